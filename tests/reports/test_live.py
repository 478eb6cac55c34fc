import json
import re
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.browser import Browser

import moerank as mr
from moerank.reports.live import LiveView, live

EVIL = '</script><img src="http://evil.example/x" onerror="window.hacked=1"><b>'
FEW = {"population": 10, "generations": 6}
LOOKS = (1, 2, 6)  # the generations of feature selection in which the browser looks


@pytest.fixture(scope="module")
def hostile():
    """Training and validation data whose features have names that a page must not take for its own."""
    train, vali, _ = mr.load_planted_fold(1)
    names = [f"{EVIL}{number}" for number in range(train.n_features)]
    return [mr.RankingData(part.X, part.y, part.qid, feature_names=names) for part in (train, vali)]


def solver(**more):
    return mr.MOFSRank(instance_selection=FEW, feature_selection=FEW, ensemble=FEW, random_state=0, **more)


class Gate:
    """Stops a search in some generations until someone has looked at it."""

    def __init__(self):
        self.looks, self.looked = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, stage, fraction, generation, n_eval):
        if stage == "feature_selection" and generation in LOOKS:
            self.looks.release()
            assert self.looked.acquire(timeout=300)
            time.sleep(0.01)


SHOWN = """[document.querySelectorAll(".mark").length, document.getElementById("said").textContent,
            document.querySelector("output")?.textContent]"""


def test_a_page_shows_the_front_as_it_grows_and_then_the_chosen_member(hostile, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("moerank.reports.live.EVERY", 0.0)
    train, vali = hostile
    gate, fitted = Gate(), []

    def work():
        with live(solver(progress=gate), tmp_path / "front.html") as shown:
            fitted.append(shown.fit(train, validation=vali))

    thread = threading.Thread(target=work)
    with Browser(tmp_path / "profile", 390, 844) as browser:
        thread.start()
        looks = []
        for generation in LOOKS:
            assert gate.looks.acquire(timeout=300)
            if generation == 1:
                browser.ask("Page.navigate", url=(tmp_path / "front.html").as_uri())
            said = f"feature selection: generation {generation}"
            browser.wait(f'document.getElementById("said")?.textContent === "{said}"')
            looks.append(browser.value(SHOWN))
            gate.looked.release()
        thread.join(300)
        browser.wait('document.getElementById("said").textContent === "The search has ended."')
        _, _, output = browser.value(SHOWN)
        n_polled = len(browser.requests)
        marks = 'document.querySelectorAll(".plot .mark").length'
        assert browser.value(marks) == len(fitted[0].front_)
        assert not browser.value("window.hacked") and not browser.value("document.querySelectorAll('img').length")
        assert browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        time.sleep(1.5)
        assert len(browser.requests) == n_polled  # it does not ask any more
        assert {re.sub(r"\?\d+$", "", address) for address in browser.requests} == {
            (tmp_path / name).as_uri() for name in ("front.html", "front.js")
        }
        assert browser.errors == []
    assert 2 <= looks[0][0] < looks[-1][0]  # one mark is that of the key
    assert all(EVIL in said for _, _, said in looks)  # nothing is blank until it is pointed at
    chosen = fitted[0].front_.iloc[fitted[0].chosen_]
    assert f"member {fitted[0].chosen_ + 1} of {len(fitted[0].front_)}, chosen" in output
    assert f"validation: NDCG@10 {chosen['validation']:.4f}" in output
    assert ", ".join(train.feature_names[column] for column in chosen["features"]) in output
    plain = solver().fit(train, validation=vali)
    assert fitted[0].front_.equals(plain.front_) and np.array_equal(fitted[0].coef_, plain.coef_)
    assert capsys.readouterr().err == f"live view: {(tmp_path / 'front.html').as_uri()}\n"


def state(path):
    """The last state that a page holds."""
    return json.loads(re.search(r'id="fronts">(.*?)</script>', path.read_text(), re.DOTALL)[1])


@pytest.mark.parametrize(("error", "said"), [(KeyboardInterrupt, "interrupted"), (MemoryError, "has failed. full")])
def test_a_page_says_what_ended_the_search_and_keeps_the_front(error, said, hostile, tmp_path):
    def stop(stage, fraction, generation, n_eval):
        if (stage, generation) == ("ensemble", 2):
            raise error("full")

    with pytest.raises(error), live(solver(progress=stop), tmp_path / "front.html") as shown:
        shown.fit(hostile[0])
    last = state(tmp_path / "front.html")
    assert last["ended"] and said in last["said"]
    assert last["fronts"]["solvers"] == ["feature selection", "ensemble"]
    assert all(run[-1] for run in last["fronts"]["runs"])


def test_a_notebook_shows_a_frame_that_is_drawn_anew(hostile, monkeypatch):
    drawn = []
    handle = SimpleNamespace(update=lambda view: drawn.append(view._repr_html_()))
    ipython = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=True),
        display=SimpleNamespace(display=lambda display_id: handle),
    )
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr("moerank.reports.live.EVERY_IN_NOTEBOOK", 0.0)
    with live(solver()) as shown:
        shown.fit(hostile[0])
    assert len(drawn) > 2 * FEW["generations"]
    assert all(frame.startswith('<iframe sandbox="allow-scripts"') and frame.count("<") == 2 for frame in drawn)
    assert "The search has ended." in drawn[-1]


def test_a_solver_without_a_search_is_refused():
    with pytest.raises(TypeError, match=r"live: RankRLS has no search"), live(mr.RankRLS()):
        pass


def test_a_disk_without_room_does_not_end_the_search():
    def full(view):
        raise OSError("no space left")

    view = LiveView("title", full, 0.0)
    view.hear("training", 0.5, "text")
    assert view.state["said"] == "training: text"


@pytest.mark.parametrize("name", ["front.html", "front.js"])
def test_files_of_others_are_not_replaced_and_its_own_are(name, hostile, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=f"{name} is there, but not from"), live(solver(), tmp_path / "front.html"):
        pass
    assert (tmp_path / name).read_text() == "mine"
    (tmp_path / name).unlink()
    for _ in range(2):
        with live(solver(), tmp_path / "front.html") as shown:
            shown.fit(hostile[0])
    assert state(tmp_path / "front.html")["ended"]

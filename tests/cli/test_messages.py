"""What users can mend is one sentence on standard error."""

import os
import signal
import subprocess
import sys
import time

import pytest
from helpers import logs

from moerank.cli.messages import REPEAT_SECONDS

INSIDE = """
import hashlib, sys
from moerank.cli.messages import interruptible
with interruptible("--resume"):
    print("begun", flush=True)
    sys.stdout.write("kept")
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_a_command_whose_main_thread_is_inside_a_kernel(number):
    """The function of OpenSSL takes minutes. Like a kernel it hears no signal, and holds no lock of the interpreter."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    words = [sys.executable, "-c", INSIDE, "run", "digits"]
    with subprocess.Popen(words, env=buffered, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        for n_signals in (0, 2, 1):  # `timeout` sends two at once
            for _ in range(n_signals):
                process.send_signal(number)
            if n_signals != 1:
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(2 * REPEAT_SECONDS)
        try:
            assert process.wait(60) == 128 + number
        finally:
            process.kill()
        assert process.stdout.read() == "kept"
        *_, said, again = process.stderr.read().splitlines()
    assert said == "Interrupted. All finished work is saved; continue with:"
    assert again == "  moerank run digits --resume"


def test_a_search_that_keeps_what_it_has_after_an_interrupt_goes_on():
    """As that of the best subsets does; `timeout` sends its signal twice."""
    code = (
        "import signal, time\nfrom moerank.cli.messages import interruptible\n"
        "with interruptible():\n"
        "    try:\n        signal.raise_signal(signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n        signal.raise_signal(signal.SIGINT)\n"
        "    time.sleep(0.1)\n    print('ended')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended\n", "")


@pytest.mark.parametrize("words", [["solvers"], ["data", "describe", "shop.csv"]])
def test_a_command_whose_reader_has_gone_says_nothing(tmp_path, words):
    (tmp_path / "shop.csv").write_text("query,label,price\n1,0,2\n1,1,3\n")
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([sys.executable, "-m", "moerank", *words], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (run.returncode, b"error" in run.stderr) == (1, False)


def test_a_broken_pipe_of_the_command_itself_is_said(tmp_path):
    """As from a process that cannot start, whose parent finds nobody at the other end."""
    (tmp_path / "shop.csv").write_text("query,label,price\n1,0,2\n1,1,3\n")
    code = (
        "import moerank.data.read.table as table; from moerank.cli.app import main\n"
        "def fail(*_, **__): raise BrokenPipeError(32, 'Broken pipe')\n"
        "table.load_table = fail; main()"
    )
    words = ["data", "describe", "shop.csv"]
    run = subprocess.run([sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr.splitlines()[-1]) == (2, "", "error: [Errno 32] Broken pipe")


def test_kernels_that_nothing_keeps_are_not_said_to_be_compiled(command, monkeypatch):
    monkeypatch.setattr("moerank.kernels.compiled.missing", lambda groups: [("algebra.dot", "(int64,)", 1.0)])
    monkeypatch.setattr("moerank.kernels.compiled._folders", list)
    outcome = command("compile")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == "error: no folder keeps the compiled kernels; set NUMBA_CACHE_DIR to one of yours\n"


@pytest.mark.parametrize("encoding", ["ascii:surrogateescape", "latin-1", "utf-8"])
def test_signs_that_the_output_cannot_encode_become_ascii(encoding):
    text, (name, _, _) = "\u2212.1 \u00b1 2 \u03b1", encoding.partition(":")
    code = (
        "from moerank.cli.messages import escape_unencodable, notice, say\n"
        "from moerank.cli.tables import output\n"
        "escape_unencodable()\n"
        f"say({text!a})\nnotice({text!a})\noutput().print({text!a})\n"
    )
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, timeout=60)
    line = text.encode(name, "backslashreplace")
    assert (ended.stdout.splitlines(), ended.stderr.splitlines()) == ([line] * 2, [line])


MISTAKES = [
    ("run digts", "unknown problem 'digts'; did you mean 'digits'?"),
    ("run TINY --solver mofrank", "unknown solver 'mofrank'; did you mean 'mofsrank'?"),
    ("run TINY --set ensemble=3", "--set ensemble=3: write --set STAGE.KEY=VALUE"),
    ("run TINY --set backend.parameters.alhpa=3", "unknown parameter of rankrls 'alhpa'; did you mean"),
    ("run TINY --fold 6", "fold must be at most 5, not 6"),
    ("run mq2008", "no MQ2008 in data; download MQ2008 of LETOR 4.0"),
    ("run TINY --out file/deep", "cannot write results to file/deep: Not a directory"),
    ("run wrong.toml", "wrong.toml: unknown key [data] fodler; did you mean folder?"),
    ("run part.toml --data . --fold all", "Fold2: no test part; looked for test.txt"),
    ("run TINY --set data.n_queries=1000000000000", "1,000,000,000,000 queries of 12 documents with 20 features would"),
    ("run TINY --set data.n_queries=true", "[data] n_queries must be an integer, not True"),
    ("run TINY --set data.noise=true", "[data] noise: should be a valid number"),
    ("run TINY --set data.grid=[true,20]", "[data.grid] grid must be an integer, not True"),
    ("run TINY --set solver.parameters.workers=2", "workers belongs to a run, not to a method; options such as"),
    ("study TINY", "a study needs a problem, a solver and a fold; moerank solvers lists the solvers"),
    ("study TINY --solvers fsmrnk", "did you mean 'fsmrank'"),
    ("study TINY --solvers fsmrank --folds one", "give numbers separated by commas, or write all"),
    ("report nowhere", "holds no study; moerank study makes one"),
    ("report nowhere --format pdf", "format must be one of 'html', 'latex', 'csv', 'pairs', not 'pdf'"),
    ("plot front nowhere", "nowhere does not exist; name the folder of a run or of a study"),
    ("plot front Fold1", "Fold1 holds no study; moerank study makes one"),
    ("data ingest no.jsonl --judgments qrels.txt --out t.parquet", "no.jsonl: No such file or directory"),
    (
        "data ingest log.jsonl --judgments stars.csv --out t.parquet",
        "stars.csv: no columns of query, document and grade",
    ),
    (
        "data ingest log.jsonl --judgments qrels.txt --id sku --out t.parquet",
        "log.jsonl, line 1: --id is not for logs of",
    ),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES)
def test_mistakes_are_one_sentence_before_any_work(command, tmp_path, monkeypatch, words, message):
    files = {
        "file": "",
        "wrong.toml": 'name = "wrong"\ndata = {source = "letor", folder = "SET", fodler = "SET"}',
        "part.toml": 'name = "part"\ndata = {source = "letor", folder = "."}',
        "log.jsonl": logs.plugin(logs.GOLDEN),
        "qrels.txt": logs.trec(logs.GOLDEN),
        "stars.csv": "query,sku,stars,rating\ntrail shoes,p7,3,9\ntrail shoes,p3,1,9\n",
        **{f"Fold1/{part}.txt": "1 qid:1 1:2\n0 qid:1 1:1\n" for part in ("train", "vali", "test")},
        **{f"Fold2/{part}.txt": "1 qid:1 1:2\n0 qid:1 1:1\n" for part in ("train", "vali")},
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr("moerank.runs.run_folder.run_fold", None)
    begin = time.monotonic()
    outcome = command(*words.split())
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("error: ")
    assert message in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    assert time.monotonic() - begin < 5
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert there == files.keys(), "nothing is written"

"""Kill a study at random moments and compare what it ends with to an undisturbed run.

    python tests/benchmarks/kill_study.py [--kills 20] [--studies 1] [--most 50] [--longest 5] [--seed 0]

Two small problems, five folds, six solvers, two seeds of those that draw. Two runners of two workers each share one
study; one of them, drawn at random, is killed and started again, --most times and at most --longest seconds apart,
before the study may end in peace; then the next study begins, until both numbers are reached. Prints what differs; exit
code 1 if anything does, if a temporary file stays, if a finished cell was started again, or if a runner ended with an
error.
"""

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import frame

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers.study_files import contents

SOLVERS = ["mofsrank", "mofsrank[ensemble=false]", "fsmrank", "ranksvm-primal", "greedy-rankrls", "listnet"]
DATA = 4  # pairs of problems, each with one undisturbed study
BUDGET = "population = 20\ngenerations = 15\n"
RUNNER = (
    "import sys; from moerank.studies.study import Study; Study(sys.argv[2:], {}, sys.argv[1], seeds=2).run(workers=2)"
)


def problems(folder, data):
    """Two planted problems of different data."""
    folder.mkdir()
    for name, seed in (("first", 2 * data), ("second", 2 * data + 1)):
        path = folder / f"{name}.toml"
        stages = "".join(f"[{s}]\n{BUDGET}" for s in ("instance_selection", "feature_selection", "ensemble"))
        path.write_text(f'name = "{name}"\n[data]\nsource = "planted"\nn_queries = 40\nseed = {seed}\n{stages}')
        yield str(path)


def start(out, files):
    """A runner in a process of its own; what it says goes to the file of errors beside the study."""
    command = [sys.executable, "-c", RUNNER.format(SOLVERS), str(out), *files]
    with open(out.parent / "errors.log", "a") as errors:
        return subprocess.Popen(command, stdout=errors, stderr=errors)


def n_starts(log):
    return len(log.read_text().splitlines()) if log.exists() else 0


def kill_until_finished(out, files, rng, kills, longest):
    """Run one study to its end while runners are killed, at most ``kills`` times; what is wrong, and the kills."""
    log, finished_at, n_kills, wrong = out / "starts.log", {}, 0, []
    runners = [start(out, files) for _ in range(2)]
    while any(runner.poll() is None for runner in runners):
        moment, before = time.monotonic() + rng.uniform(0, longest), n_starts(log)
        # Three of four wait for a cell to begin, so that not all moments fall on the interpreter's start.
        waits = rng.random() < 0.75
        while (time.monotonic() < moment or (waits and n_starts(log) == before)) and any(
            runner.poll() is None for runner in runners
        ):
            time.sleep(0.01)
        which = rng.randrange(2)
        if n_kills == kills or runners[which].poll() is not None:
            continue
        runners[which].send_signal(signal.SIGKILL)
        runners[which].wait()
        n_kills += 1
        for path in (out / "cells").glob("*.json"):
            finished_at.setdefault(path.stem, n_starts(log))
        runners[which] = start(out, files)
    wrong += [f"a runner ended with {runner.returncode}" for runner in runners if runner.returncode]
    lines = log.read_text().splitlines()
    again = [line for number, line in enumerate(lines) if finished_at.get(line.split()[0], len(lines)) <= number]
    wrong += [f"finished, and started again: {line}" for line in again]
    wrong += [f"left behind: {path}" for path in out.rglob("*.tmp")]
    return wrong, n_kills


def main():
    arguments = frame.arguments(__doc__, kills=20, studies=1, most=50, longest=5.0, seed=0)
    rng = random.Random(arguments.seed)
    undisturbed, n_kills, n_studies, bad = {}, 0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        while n_kills < arguments.kills or n_studies < arguments.studies:
            data, out = n_studies % DATA, Path(name) / f"killed-{n_studies}/study"
            if data not in undisturbed:
                files = list(problems(Path(name) / f"problems-{data}", data))
                (Path(name) / f"undisturbed-{data}").mkdir()
                reference = Path(name) / f"undisturbed-{data}/study"
                start(reference, files).wait()
                undisturbed[data] = files, contents(reference)
            files, expected = undisturbed[data]
            out.parent.mkdir()
            left = max(arguments.kills - n_kills, 1)
            wrong, n = kill_until_finished(out, files, rng, min(left, arguments.most), arguments.longest)
            same = contents(out) == expected
            n_kills, n_studies, bad = n_kills + n, n_studies + 1, bad + bool(wrong or not same)
            print(f"study {n_studies}: {n} kills, equal files: {same} {'; '.join(wrong)}", flush=True)
            if wrong or not same:
                print((out.parent / "errors.log").read_text()[-4000:])
            shutil.rmtree(out.parent)
    print(f"{n_kills} kills of {n_studies} studies of {len(expected)} files, {bad} with something wrong")
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()

"""Kill a study at random moments and compare what it ends with to an undisturbed run.

    python tests/benchmarks/kill_study.py [--kills 20] [--seed 0]

Two small problems, five folds, six solvers, two seeds of those that draw. Prints what differs; exit code 1 if
anything does, if a temporary file stays, or if a finished cell was started again.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOLVERS = ["mofsrank", "mofsrank-no-ensemble", "fsmrank", "ranksvm-primal", "greedy-rankrls", "listnet"]
BUDGET = "population = 20\ngenerations = 15\n"
RUNNER = (
    "import sys; from moerank.studies.study import Study; "
    "Study(sys.argv[3:], {}, sys.argv[1], seeds=2).run(workers=int(sys.argv[2]))"
)


def problems(folder):
    """Two planted problems of different data."""
    for name, seed in (("first", 1), ("second", 2)):
        path = folder / f"{name}.toml"
        stages = "".join(f"[{s}]\n{BUDGET}" for s in ("instance_selection", "feature_selection", "ensemble"))
        path.write_text(f'name = "{name}"\n[data]\nsource = "planted"\nn_queries = 40\nseed = {seed}\n{stages}')
        yield str(path)


def start(out, workers, files):
    return subprocess.Popen([sys.executable, "-c", RUNNER.format(SOLVERS), str(out), str(workers), *files])


def n_starts(log):
    return len(log.read_text().splitlines()) if log.exists() else 0


def contents(folder):
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "starts.log":
            text = path.read_text()
            if path.parent.name == "cells":
                values = json.loads(text)
                del values["times"]
                text = json.dumps(values)
            files[str(path.relative_to(folder))] = text
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = list(problems(folder))
        begin = time.monotonic()
        start(folder / "undisturbed", 2, files).wait()
        whole = time.monotonic() - begin
        print(f"undisturbed: {whole:.0f} s, {len(list((folder / 'undisturbed/cells').iterdir()))} cells")
        finished_at = {}
        for kill in range(arguments.kills):
            log = folder / "killed/starts.log"
            before = n_starts(log)
            process = start(folder / "killed", 1 + kill % 2, files)
            # Every fourth is killed as it comes, the others at work, of which there is enough for all kills.
            while kill % 4 and n_starts(log) == before and process.poll() is None:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 4 * whole / arguments.kills))
            process.send_signal(signal.SIGKILL)
            process.wait()
            finished = {path.stem for path in (folder / "killed/cells").glob("*.json")}
            for key in finished - finished_at.keys():
                finished_at[key] = n_starts(log)
            print(f"kill {kill + 1}: {len(finished)} cells finished, {n_starts(log)} starts", flush=True)
        start(folder / "killed", 2, files).wait()
        lines = (folder / "killed/starts.log").read_text().splitlines()
        again = [line for number, line in enumerate(lines) if finished_at.get(line.split()[0], len(lines)) <= number]
        left = [str(path) for path in folder.rglob("*.tmp")]
        same = contents(folder / "killed") == contents(folder / "undisturbed")
        print(
            f"equal files: {same}; temporary files: {left or 'none'}; finished cells started again: {again or 'none'}"
        )
        raise SystemExit(not same or bool(left) or bool(again))


if __name__ == "__main__":
    main()

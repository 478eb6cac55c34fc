"""Put mutated problem files, results, studies and journals through their readers, and see what comes out.

    python tests/benchmarks/fuzz.py [--problems 100000] [--results 100000] [--journals 100000] [--seed 0]

A reader may return, or raise a ValueError or OSError that names the file. Anything else is a finding, and so is a call
that takes over two seconds, or more than a gigabyte where the system can limit that; exit code 1 if there is any. The
first of each kind is kept in the folder that is printed. `mutated_journals.py` says what is right for a journal.
"""

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mutated_journals import Journals

from moerank.studies.grid import Cell
from moerank.studies.problem import load_problem, shipped_problems
from moerank.studies.result_files import model_json, read_result
from moerank.studies.run_fold import run_fold
from moerank.studies.solver import Solver
from moerank.studies.store import Store
from moerank.studies.study import Study

HANG = 2.0
"""Seconds of the processor: those of the clock tell nothing on a busy machine. What waits for ever does not end."""
MEMORY = 2**30
"""Bytes that a reader may take beyond what the process has before."""

PROBLEM = """
name = "tiny"
[data]
source = "planted"
n_queries = 10
n_documents = 4
n_relevant = 2
n_redundant = 1
n_noise = 0
noise = 0.1
grid = [1, 3]
[metric]
name = "NDCG@10"
gain = "exp2"
[backend]
name = "rankrls"
parameters = {alpha = 1.0}
[solver]
parameters = {lambda1 = 0.5, x = [1, {y = "z"}]}
tune = true
[search]
algorithm = "nsga2"
objectives = ["features", "error"]
final = "train"
[instance_selection]
density = [0.1, 0.2]
[feature_selection]
generations = 3
population = 8
[ensemble]
inject = false
[[published]]
method = "M"
features = 2.5
scores = {"NDCG@10" = 0.5}
folds = {MAP = [0.1, 0.2]}
source = "somewhere"
"""

RAW = [
    *("NaN", "nan", "inf", "-Infinity", "1e999", "-1", "0", "1.5", "true", "false", "null", "[]", "{}", '""', '"5"'),
    *("9" * 30, "-" + "9" * 25, "9" * 5000, "0x" + "f" * 3000, "1_000", "2020-01-01", "1e-400", "-0.0", str(2**63)),
    *("[" * 3000, "[" * 300 + "]" * 300, '{"a":' * 2000, '{"a":' * 150 + "1" + "}" * 150, "[" * 50000),
    *('"\\ud800"', '"\\u0000"', '"\\u001b[2J"', '"../../x"', '"[bold]"', "'" + "x" * 5000 + "'", '"' + "y" * 300 + '"'),
    *(
        '{"a": 1, "a": 2}',
        "[1, 2",
        "10000000000000",
        "[null]",
        '[[1, "2"], {}]',
        '{"format": 4}',
        '"𝛼"',
        "01",
        "+5",
        ".",
    ),
]
"""What is put in the place of a value, as it stands in the file."""

NUMBER_OR_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+\.?\d*(?:[eE][-+]?\d+)?|true|false|null|[\[\]{}]')


def mutate(text, rng):
    """Return the text with one to three mutations."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(MUTATIONS)(text, rng)
    return text


def flip(text, rng):
    if not text:
        return bytes([rng.randrange(256)])
    place = rng.randrange(len(text))
    return text[:place] + bytes([text[place] ^ (1 << rng.randrange(8))]) + text[place + 1 :]


def truncate(text, rng):
    return text[: rng.randrange(len(text) + 1)] if rng.random() < 0.9 else b""


def cut(text, rng):
    begin = rng.randrange(len(text) + 1)
    return text[:begin] + text[begin + rng.randrange(1, 60) :]


def repeat(text, rng):
    begin = rng.randrange(len(text) + 1)
    end = begin + rng.randrange(1, 200)
    return text[:end] + text[begin:end] + text[end:]


def insert(text, rng):
    place = rng.randrange(len(text) + 1)
    junk = rng.choice((b"\xff", b"\xc3", b"\x00", b"\n", b'"', b"[", b"]", b"{", b"}", b",", b"=", b".", b"'''", b"#"))
    return text[:place] + junk * rng.choice((1, 1, 2, 500)) + text[place:]


def replace(text, rng):
    """Put another value in the place of a value, a key or a bracket."""
    found = list(NUMBER_OR_TEXT.finditer(text))
    if not found:
        return text
    chosen = rng.choice(found)
    other = rng.choice(RAW).encode() if rng.random() < 0.7 else rng.choice(found)[0]
    return text[: chosen.start()] + other + text[chosen.end() :]


def line(text, rng):
    """Take away, double or move a line: a key, with its value."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    chosen = lines[place := rng.randrange(len(lines))]
    if rng.random() < 0.6:
        del lines[place]
    if rng.random() < 0.6:
        lines.insert(rng.randrange(len(lines) + 1), chosen)
    return b"".join(lines)


MUTATIONS = (flip, truncate, cut, repeat, insert, replace, replace, replace, replace, line, line)


@dataclass
class Target:
    """A kind of file: where it is, texts that are right, and a function that reads it and uses what it has read."""

    path: Path
    bases: list
    read: object

    def mutate(self, base, rng):
        return mutate(base, rng)


def problem_target(folder):
    def read():
        problem = load_problem(path)
        problem.configuration(), Cell(problem, 1, Solver(name="mofsrank"), 0).key

    path = folder / "problem.toml"
    return Target(path, [PROBLEM.encode(), *(file.read_bytes() for file in shipped_problems().values())], read)


def result_targets(folder):
    """Results of a run, the files of a study."""
    (folder / "problem.toml").write_text(PROBLEM.replace('x = [1, {y = "z"}]', "").replace("lambda1 = 0.5, ", ""))
    changes = {"published": [], "solver.parameters": {}, "data.grid": None, "metric.gain": None}
    changes |= {"instance_selection.population": 4, "instance_selection.generations": 1}
    problem = load_problem(folder / "problem.toml", changes)
    results = [run_fold(problem, 1, solver).to_json().encode() for solver in ("rankrls", "mofsrank", "lambdamart")]
    results = [text if len(text) < 20_000 else _fewer_trees(text) for text in results]

    def read_run():
        result = read_result(folder)
        if result is not None:
            result.to_json(), model_json(result), result.grid, result.further_objectives

    study_folder = folder / "study"
    study = Study([problem], ["rankrls", "single"], study_folder, folds=[1, 2]).run()
    cell, other = study.cells()[:2]
    with Store(study_folder) as store:
        store.fail(other, {"error": "E", "traceback": "T"})

    def read_study():
        loaded = Study.load(study_folder)
        if len(loaded.problems) * sum(1 for _ in loaded.solvers) < 20 and _n_cells(loaded) < 100:
            loaded.states()

    store = Store(study_folder, write=False)
    cell_path, failure_path = (
        study_folder / part / f"{entry.key}.json" for part, entry in (("cells", cell), ("failures", other))
    )
    return [
        Target(folder / "result.json", results, read_run),
        Target(folder / "result.json", results, read_run),
        Target(study_folder / "study.json", [(study_folder / "study.json").read_bytes()], read_study),
        Target(cell_path, [cell_path.read_bytes()], lambda: store.read(cell)),
        Target(failure_path, [failure_path.read_bytes()], lambda: store.read_failure(other)),
    ]


def _fewer_trees(text):
    """Trees make a result large: keep two of them."""
    values = json.loads(text)
    for ranker in values["front"]:
        ranker["trees"] = {
            "columns": [0, 1], "thresholds": [0.5, 0.25], "left": [-1, -3], "right": [-2, -4],
            "leaves": [0.1, 0.2, 0.3, 0.4], "roots": [0, 1],
        }  # fmt: skip
    return json.dumps(values, indent=1).encode()


def _n_cells(study):
    return sum(grid.n_cells for grid in study._grids)


def attack(target, number, seed):
    """Read one mutated file; return what it came to, the seconds, and the text."""
    rng = random.Random(f"{seed} {target.path.name} {number}")
    text = target.mutate(rng.choice(target.bases), rng)
    target.path.write_bytes(text)
    begin = time.process_time()
    try:
        target.read()
        outcome = "read"
    except (ValueError, OSError) as error:
        outcome = (
            "refused" if target.path.name in str(error) else f"finding: no file in {type(error).__name__}: {error}"
        )
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        outcome = f"finding: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
        if isinstance(error, AssertionError):
            outcome += f": {error}"
        if isinstance(error, KeyboardInterrupt):
            raise
    seconds = time.process_time() - begin
    return (f"finding: {seconds:.1f} s" if seconds > HANG else outcome), seconds, text


def limit_memory():
    """Let the process grow by so much from here; a reader that wants more gets a MemoryError."""
    try:
        import resource
    except ImportError:  # Windows
        return
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--results", type=int, default=100_000)
    parser.add_argument("--journals", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    kept = Path(tempfile.mkdtemp(prefix="fuzz-findings-"))
    n_findings = 0
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        for kind, n_files, targets in (
            ("problem files", arguments.problems, [problem_target(Path(name))]),
            ("result and study files", arguments.results, result_targets(Path(name))),
            ("journals", arguments.journals, [Journals(Path(name), mutate)]),
        ):
            for target in targets:
                for text in target.bases:  # these are right
                    target.path.write_bytes(text)
                    target.read()
            limit_memory()
            outcomes, slowest, begin = Counter(), 0.0, time.perf_counter()
            for number in range(n_files):
                target = targets[number % len(targets)]
                outcome, seconds, text = attack(target, number, arguments.seed)
                slowest = max(slowest, seconds)
                outcomes[outcome[:200]] += 1
                if outcome.startswith("finding") and outcomes[outcome[:200]] == 1:
                    (kept / f"{number}-{target.path.name}").write_bytes(text)
                    print(f"{number} {target.path.name}: {outcome[:300]}", flush=True)
            took = time.perf_counter() - begin
            found = sum(count for outcome, count in outcomes.items() if outcome.startswith("finding"))
            n_findings += found
            print(
                f"{kind}: {n_files:,} with seed {arguments.seed} in {took:.0f} s; {outcomes['read']:,} read, "
                f"{outcomes['refused']:,} refused, {found} findings; slowest {slowest * 1000:.0f} ms",
                flush=True,
            )
            if unnoticed := sum(getattr(target, "unnoticed", 0) for target in targets):
                print(f"  of these, {unnoticed:,} searches ended with another front of true values", flush=True)
    end(kept, n_findings)


def end(kept, n_findings):
    """Say where the findings are kept, or remove their empty folder, and exit."""
    if n_findings:
        print(f"findings are in {kept}")
    else:
        shutil.rmtree(kept)
    sys.exit(n_findings > 0)


if __name__ == "__main__":
    main()

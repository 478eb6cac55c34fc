"""Put mutated files of every kind through their readers, and see what comes out.

    python tests/benchmarks/fuzz.py [--kinds problem,result,memo,letor,csv,parquet] [--files 100000] [--seed 0]

A reader may return, or raise a ValueError or OSError that names the file. LETOR and CSV files are compared, to the bit,
with what a slow reader finds in them. A memo gives a beginning of the records that were written, and a search that
resumes from it ends as the undisturbed one. Anything else is a finding, and so is a call that takes over two seconds,
or more than a gigabyte where the system can limit that; exit code 1 if there is any. The first of each kind is kept in
the folder that is printed.
"""

import argparse
import csv
import io
import math
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers.broken_letor import VALID, broken, judged
from helpers.interrupted_search import GENERATIONS, assert_same_result
from helpers.toy_search import ALGORITHMS, WeighedBits

import moerank.data.read.letor
from moerank.data import load_table
from moerank.data.read.csv import MISSING
from moerank.evolution import Memo, search
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
[metric]
name = "NDCG@10"
[backend]
name = "rankrls"
parameters = {alpha = 1.0}
[solver]
tune = true
[search]
algorithm = "nsga2"
objectives = ["features", "error"]
[instance_selection]
density = [0.1, 0.2]
population = 4
generations = 1
[feature_selection]
generations = 3
population = 8
[ensemble]
inject = false
population = 4
generations = 1
"""

RAW = [
    *("NaN", "nan", "inf", "-Infinity", "1e999", "-1", "0", "1.5", "true", "false", "null", "[]", "{}", '""', '"5"'),
    *("9" * 30, "-" + "9" * 25, "9" * 5000, "0x" + "f" * 3000, "1_000", "2020-01-01", "1e-400", "-0.0", str(2**63)),
    *("[" * 3000, "[" * 300 + "]" * 300, '{"a":' * 2000, '{"a":' * 150 + "1" + "}" * 150, "[" * 50000, "01", "+5"),
    *('"\\ud800"', '"\\u0000"', '"\\u001b[2J"', '"../../x"', '"[bold]"', "'" + "x" * 5000 + "'", '"' + "y" * 300 + '"'),
    *('{"a": 1, "a": 2}', "[1, 2", "10000000000000", "[null]", '[[1, "2"], {}]', '{"format": 4}', '"𝛼"', ".", "1,5"),
    *("NULL", "NA", "None", "#N/A", "0x10", "1e5", ".5", "5.", "1e", "1 000", " 7", "7 ", "①", "−1", "1\u00a0"),
    *("5e-324", "2.2250738585072011e-308", "1" * 400, "0." + "3" * 40, "9007199254740993", "4.35", "--1", "'1'", " "),
]
"""What is put in the place of a value, as it stands in the file."""

NUMBER_OR_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+\.?\d*(?:[eE][-+]?\d+)?|true|false|null|[\[\]{}]')
JUNK = b"\xff \xc3 \x00 \n \r \r\n \" [ ] { } , ; \t = . ''' # \xef\xbb\xbf \\ \x1a \x0c".split(b" ")


def flip(text, rng):
    place = rng.randrange(len(text) + 1)
    return text[:place] + bytes([(text[place : place + 1] or b"\0")[0] ^ (1 << rng.randrange(8))]) + text[place + 1 :]


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
    return text[:place] + rng.choice(JUNK) * rng.choice((1, 1, 2, 500)) + text[place:]


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


BINARY = (flip, flip, truncate, cut, repeat, insert)
TEXTUAL = (flip, truncate, cut, repeat, insert, replace, replace, replace, replace, line, line)


def mutate(text, rng, mutations=TEXTUAL):
    """Return the text with one to three mutations."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(mutations)(text, rng)
    return text


@dataclass
class Target:
    """A kind of file: where it is, texts that are right, a function that reads it and uses what it has read."""

    path: Path
    bases: list[bytes]
    read: Callable[[], object]
    mutate: Callable[[bytes, random.Random], bytes] = mutate


def problem_targets(folder):
    path = folder / "problem.toml"

    def read():
        problem = load_problem(path)
        problem.configuration(), Cell(problem, 1, Solver(name="mofsrank"), 0).key

    return [Target(path, [PROBLEM.encode(), *(file.read_bytes() for file in shipped_problems().values())], read)]


def result_targets(folder):
    """Results of a run, the files of a study."""
    (folder / "problem.toml").write_text(PROBLEM)
    problem = load_problem(folder / "problem.toml")
    results = [run_fold(problem, 1, solver).to_json().encode() for solver in ("rankrls", "mofsrank")]
    results.append(run_fold(problem, 1, "lambdamart[n_trees=2]").to_json().encode())

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
        if sum(grid.n_cells for grid in loaded._grids) < 100:
            loaded.states()

    store = Store(study_folder, write=False)
    cell_path, failure_path = study_folder / f"cells/{cell.key}.json", study_folder / f"failures/{other.key}.json"
    return [
        Target(folder / "result.json", results, read_run),
        Target(study_folder / "study.json", [(study_folder / "study.json").read_bytes()], read_study),
        Target(cell_path, [cell_path.read_bytes()], lambda: store.read(cell)),
        Target(failure_path, [failure_path.read_bytes()], lambda: store.read_failure(other)),
    ]


def memo_targets(folder):
    """A memo whose check sums tell what was changed: what is left of it is resumed to the same bits."""
    path = folder / "run.memo"

    def run(memo):
        return search(WeighedBits(), ALGORITHMS["NSGA2"](), GENERATIONS, seed=3, memo=memo)

    undisturbed = run(Memo(path))
    return [Target(path, [path.read_bytes()], lambda: assert_same_result(run(Memo(path)), undisturbed))]


def letor_targets(folder):
    path = folder / "broken.txt"

    def read():
        content = path.read_bytes()
        moerank.data.read.letor.CHUNK = (1, 7, 64, 300, 4096)[len(content) % 5]
        missing, dtype = (None, 0.25)[len(content) % 2], (np.float64, np.float32)[len(content) % 3 % 2]
        outcome = judged(path, content, missing=missing, dtype=dtype)
        assert outcome in ("read", "refused"), outcome
        if outcome == "refused":
            raise ValueError(path)

    return [Target(path, [b"".join(VALID.splitlines(keepends=True)[:6])], read, lambda base, rng: broken(rng, base))]


def made_csv(rng):
    """A small table, written as somebody may have written it."""
    text = io.StringIO()
    quote = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL))
    ends, separator = rng.choice(("\n", "\n", "\r\n", "\r")), rng.choice(",,,,;\t")
    writer = csv.writer(text, delimiter=separator, quoting=quote, lineterminator=ends)
    names = ["label", "query", *(f"f{number}" for number in range(rng.randrange(1, 5)))]
    order = rng.sample(range(len(names)), len(names))
    writer.writerow([names[place] for place in order])
    for query in rng.choice((("7", "8", "9"), ("a", "b b", "c,d"), ("1", "02", "x"), ("-5", str(2**63), "true"))):
        for _ in range(rng.randrange(1, 4)):
            values = [f"{rng.gauss(0, 10) ** 5:.{rng.randrange(1, 18)}g}" for _ in names[2:]]
            row = [str(rng.randrange(5)), query, *values]
            writer.writerow([row[place] for place in order])
    return text.getvalue().encode()


def judge_csv(content, missing):
    """Read a CSV file value by value; None if it is no table of numbers."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    for separator in ",;\t":
        try:
            names, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        except (csv.Error, ValueError):
            continue
        if {"label", "query"} <= set(names):
            break
    else:
        return None
    rows = [row for row in rows if row and not (len(row) == 1 and row[0] and not row[0].strip(" \t"))]
    wrong_name = any(name in ("", "__index_level_0__") or set(name) & set("\r\n") for name in names)
    if b"\0" in content or wrong_name or len(set(names)) < len(names) or len(names) < 3 or not rows:
        return None
    if any(len(row) != len(names) for row in rows):
        return None
    labels, queries = ([row[names.index(name)] for row in rows] for name in ("label", "query"))
    features = [place for place, name in enumerate(names) if name not in ("label", "query")]
    X = [[missing if row[place] in MISSING else number(row[place]) for place in features] for row in rows]
    y = [number(label) for label in labels]
    begins = [query for place, query in enumerate(queries) if place == 0 or query != queries[place - 1]]
    if any(label is None or not 0 <= label < 2**31 or label != int(label) for label in y) or "" in queries:
        return None
    if any(None in row for row in X) or len(set(begins)) < len(begins):
        return None
    if all(re.fullmatch(r"0|-?[1-9][0-9]{0,18}", query) and -(2**63) <= int(query) < 2**63 for query in queries):
        queries = [int(query) for query in queries]
    return np.array(X, np.float64), [int(label) for label in y], queries, [names[place] for place in features]


def number(text):
    """The finite number that a text says, or None."""
    plain = text.strip(" \t")
    if "_" in plain or "n" in plain.lower() or not plain.isascii() or plain != plain.strip():
        return None
    try:
        return float(plain) if math.isfinite(float(plain)) else None
    except ValueError:
        return None


def csv_targets(folder):
    path = folder / "table.csv"

    def read():
        content = path.read_bytes()
        missing = (None, None, -7.5)[len(content) % 3]
        expected = judge_csv(content, missing)
        try:
            data = load_table(path, label="label", query="query", missing=missing)
        except ValueError as error:
            assert expected is None, f"refused, but it is right: {error}"
            raise
        assert expected is not None, "read, but it is wrong"
        X, *others = expected
        assert data.X.shape == X.shape and data.X.tobytes() == X.tobytes(), "other values"
        assert [data.y.tolist(), data.qid.tolist(), list(data.feature_names)] == others, (
            "other labels, queries or names"
        )

    return [Target(path, [made_csv(random.Random(seed)) for seed in range(300)], read)]


def parquet_targets(folder):
    path = folder / "table.parquet"

    def made(rng):
        written, n_rows = io.BytesIO(), rng.randrange(3, 40)
        columns = {"label": [rng.randrange(5) for _ in range(n_rows)], "query": [row // 4 for row in range(n_rows)]}
        columns |= {f"f{k}": [rng.gauss(0, 1) for _ in range(n_rows)] for k in range(rng.randrange(1, 4))}
        compression, groups = rng.choice(("none", "snappy", "zstd", "gzip")), rng.choice((5, 100))
        pq.write_table(pa.table(columns), written, compression=compression, row_group_size=groups)
        return written.getvalue()

    return [
        Target(
            path,
            [made(random.Random(seed)) for seed in range(100)],
            lambda: load_table(path, label="label", query="query"),
            lambda base, rng: mutate(base, rng, BINARY),
        )
    ]


KINDS = {
    "problem": problem_targets,
    "result": result_targets,
    "memo": memo_targets,
    "letor": letor_targets,
    "csv": csv_targets,
    "parquet": parquet_targets,
}


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
        named = target.path.name in str(error)
        outcome = "refused" if named else f"finding: no file in {type(error).__name__}: {error}"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        outcome = f"finding: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error}"
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
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    kept, n_findings, memory = Path(tempfile.mkdtemp(prefix="fuzz-findings-")), 0, Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        for kind in arguments.kinds.split(","):
            folder = Path(name) / kind
            folder.mkdir()
            targets = KINDS[kind](folder)
            for target in targets:
                for text in target.bases:  # these are right
                    target.path.write_bytes(text)
                    target.read()
            limit_memory()
            outcomes, slowest, begin = Counter(), 0.0, time.perf_counter()
            for n in range(arguments.files):
                target = targets[n % len(targets)]
                outcome, seconds, text = attack(target, n, arguments.seed)
                slowest = max(slowest, seconds)
                outcomes[outcome[:100]] += 1
                if outcome.startswith("finding") and outcomes[outcome[:100]] == 1:
                    (kept / f"{n}-{target.path.name}").write_bytes(text)
                    print(f"{n} {target.path.name}: {outcome[:300]}", flush=True)
            found = outcomes.total() - outcomes["read"] - outcomes["refused"]
            n_findings += found
            print(
                f"{kind}: {arguments.files:,} with seed {arguments.seed} in {time.perf_counter() - begin:.0f} s; "
                f"{outcomes['read']:,} read, {outcomes['refused']:,} refused, {found} findings; "
                f"slowest {slowest * 1000:.0f} ms",
                flush=True,
            )
    if n_findings:
        print(f"findings are in {kept}")
    else:
        shutil.rmtree(kept)
    sys.exit(n_findings > 0)


if __name__ == "__main__":
    main()

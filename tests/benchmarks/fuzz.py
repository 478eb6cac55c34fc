"""Put mutated files of data through their readers, and compare what they read with exact readers.

    python tests/benchmarks/fuzz.py [--kinds csv,parquet] [--files 100000] [--seed 0]

A reader may return what the exact reader finds, to the bit, or raise a ValueError or OSError that names the file, of a
CSV file only if the exact reader refuses it, too. The exact readers are the `csv` module and pyarrow's
`ParquetFile.read`; `tests/data/test_letor.py` has one for LETOR files. Anything else is a finding, and so is a call
that takes over two seconds; exit code 1 if there is any. The first of each kind is kept in the folder that is printed.
"""

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
from collections import Counter
from pathlib import Path

import frame
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers.broken_letor import somewhere_else

from moerank.data import load_table
from moerank.data.read.delimited import MISSING
from moerank.data.read.table import ROW_NUMBERS

SWITCHES = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}
HANG = 2.0  # seconds of the processor: those of the clock tell nothing on a busy machine

RAW = [  # what is put in the place of a value, as it stands in the file
    *("True", "FALSE"),
    *("NaN", "nAn", "inf", "-Infinity", "1e999", "-1", "0", "1.5", "true", "false", '""', '"5"', "01", "+5", "1,5"),
    *("9" * 30, "-" + "9" * 25, "9" * 5000, "0x" + "f" * 3000, "1_000", "2020-01-01", "1e-400", "-0.0", str(2**63)),
    *("NULL", "NA", "None", "#N/A", "0x10", "1e5", ".5", "5.", ".", "1e", "1 000", " 7", "7 ", "①", "−1", "1\u00a0"),
    *("5e-324", "2.2250738585072011e-308", "1" * 400, "0." + "3" * 40, "9007199254740993", "4.35", "--1", "'1'", " "),
]

VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+\.?\d*(?:[eE][-+]?\d+)?')
JUNK = b'\xff \xc3 \x00 \n \r \r\n " , ; \t . # \xef\xbb\xbf \\ \x1a \x0c'.split(b" ")


def replaced(text, rng):
    """Another value stands in the place of a value."""
    values = list(VALUE.finditer(text))
    if not values:
        return text
    chosen = rng.choice(values)
    other = rng.choice(RAW).encode() if rng.random() < 0.7 else rng.choice(values)[0]
    return text[: chosen.start()] + other + text[chosen.end() :]


def inserted(text, rng):
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(JUNK) * rng.choice((1, 1, 2, 500)) + text[at:]


def line_moved(text, rng):
    """A line is taken away, doubled or moved."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    chosen = lines[at := rng.randrange(len(lines))]
    if rng.random() < 0.6:
        del lines[at]
    if rng.random() < 0.6:
        lines.insert(rng.randrange(len(lines) + 1), chosen)
    return b"".join(lines)


def damaged(text, rng):
    return somewhere_else(text, rng.randrange(len(text) + 1), rng)


def mutated(text, rng, mutations):
    """Return the text with one to three mutations."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(mutations)(text, rng)
    return text


def compared(path, missing, expected):
    """Read a table; return what came of it beside X, labels, queries and names that are expected, None for no table."""
    try:
        data = load_table(path, label="label", query="query", missing=missing)
    except (ValueError, OSError) as error:
        return "refused" if str(path) in str(error) else f"finding: no path in {error}"
    if expected is None:
        return "finding: read what is wrong"
    X, *others = expected
    if data.X.shape != X.shape or data.X.tobytes() != X.tobytes():
        return "finding: other values"
    same = [data.y.tolist(), data.qid.tolist(), list(data.feature_names)] == others
    return "read" if same else "finding: other labels, queries or names"


def made_csv(rng):
    """A small table, written as somebody may have written it."""
    switches = rng.choice((None, None, ("true", "false"), ("TRUE", "False", "")))
    text = io.StringIO()
    quote = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL))
    ends, separator = rng.choice(("\n", "\n", "\r\n", "\r")), rng.choice(",,,,;\t")
    writer = csv.writer(text, delimiter=separator, quoting=quote, lineterminator=ends)
    names = ["label", "query", *(f"f{number}" for number in range(rng.randrange(1, 5)))]
    order = rng.sample(range(len(names)), len(names))
    writer.writerow([names[at] for at in order])
    for query in rng.choice((("7", "8", "9"), ("a", "b b", "c,d"), ("1", "02", "x"), ("-5", str(2**63), "true"))):
        for _ in range(rng.randrange(1, 4)):
            values = [f"{rng.gauss(0, 10) ** 5:.{rng.randrange(1, 18)}g}" for _ in names[2:]]
            if switches:
                values[0] = rng.choice(switches)
            row = [str(rng.randrange(5)), query, *values]
            writer.writerow([row[at] for at in order])
    return text.getvalue().encode()


def judge_csv(content, missing):
    """Read a CSV file value by value; None if it is no table of numbers."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    for separator in ",;\t":
        try:
            parsed = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
            names, *rows = [row for row in parsed if row and not (len(row) == 1 and row[0] and not row[0].strip(" \t"))]
        except (csv.Error, ValueError):
            continue
        if {"label", "query"} <= set(names):
            break
    else:
        return None
    wrong_name = any(ROW_NUMBERS.fullmatch(name) or set(name) & set("\r\n") for name in names)
    if b"\0" in content or wrong_name or len(set(names)) < len(names) or len(names) < 3 or not rows:
        return None
    if any(len(row) != len(names) for row in rows):
        return None
    labels, queries = ([row[names.index(name)] for row in rows] for name in ("label", "query"))
    features = [at for at, name in enumerate(names) if name not in ("label", "query")]
    X = list(zip(*(numbers([row[at] for row in rows], missing) for at in features), strict=True))
    y = numbers(labels, None)
    begins = [query for at, query in enumerate(queries) if at == 0 or query != queries[at - 1]]
    if any(label is None or not 0 <= label < 2**31 or label != int(label) for label in y) or "" in queries:
        return None
    if any(None in row for row in X) or len(set(begins)) < len(begins):
        return None
    if all(re.fullmatch(r"0|-?[1-9][0-9]{0,18}", query) and -(2**63) <= int(query) < 2**63 for query in queries):
        queries = [int(query) for query in queries]
    return np.array(X, np.float64), [int(label) for label in y], queries, [names[at] for at in features]


def numbers(column, missing):
    """The numbers of a column, None for what is wrong; true and false are 1 and 0."""
    return [missing if text.strip(" \t") in MISSING else number(text) for text in column]


def number(text):
    """The finite number that a text says, or None; integers whose digits double precision loses are refused."""
    plain = text.strip(" \t")
    if plain in SWITCHES:
        return SWITCHES[plain]
    if re.fullmatch(r"[+-]?[0-9]+", plain) and abs(float(plain)) >= 9.007e15:
        return None
    if "_" in plain or "n" in plain.lower() or not plain.isascii() or plain != plain.strip():
        return None
    try:
        return float(plain) if math.isfinite(float(plain)) else None
    except ValueError:
        return None


def try_csv(path, rng):
    content = mutated(made_csv(rng), rng, (damaged, inserted, line_moved, line_moved, replaced, replaced, replaced))
    path.write_bytes(content)
    missing = rng.choice((None, None, -7.5))
    expected = judge_csv(content, missing)
    outcome = compared(path, missing, expected)
    return "finding: refused what is right" if outcome == "refused" and expected is not None else outcome


def try_parquet(path, rng):
    stored, n_rows = io.BytesIO(), rng.randrange(3, 40)
    columns = {"label": [rng.randrange(5) for _ in range(n_rows)], "query": [row // 4 for row in range(n_rows)]}
    columns |= {f"f{k}": [rng.gauss(0, 1) for _ in range(n_rows)] for k in range(rng.randrange(1, 4))}
    compression, size = rng.choice(("none", "snappy", "zstd", "gzip")), rng.choice((5, 100))
    pq.write_table(pa.table(columns), stored, compression=compression, row_group_size=size)
    path.write_bytes(mutated(stored.getvalue(), rng, (damaged,)))
    try:
        table = pq.ParquetFile(path, page_checksum_verification=True).read().to_pandas()
        y, queries = table.pop("label").tolist(), table.pop("query").tolist()
        expected = table.to_numpy(np.float64), y, queries, list(table.columns)
    except Exception:  # whatever pyarrow and pandas make of a broken file
        expected = None
    return compared(path, None, expected)


TRIES = {"csv": (try_csv, "table.csv"), "parquet": (try_parquet, "table.parquet")}


def main():
    arguments = frame.arguments(__doc__, kinds=",".join(TRIES), files=100_000, seed=0)
    findings, n_findings, memory = Path(tempfile.mkdtemp(prefix="fuzz-findings-")), 0, Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        for kind in arguments.kinds.split(","):
            attempt, name = TRIES[kind]
            path = Path(folder, name)
            outcomes, slowest, begin = Counter(), 0.0, time.perf_counter()
            for n in range(arguments.files):
                seconds = time.process_time()
                try:
                    outcome = attempt(path, random.Random(f"{arguments.seed} {kind} {n}"))
                except Exception as error:
                    outcome = f"finding: {type(error).__name__}: {error}"
                seconds = time.process_time() - seconds
                slowest = max(slowest, seconds) if n else 0.0  # kernels are compiled at first
                outcome = f"finding: {seconds:.1f} s" if n and seconds > HANG else outcome[:100]
                outcomes[outcome] += 1
                if outcome.startswith("finding") and outcomes[outcome] == 1:
                    shutil.copy(path, findings / f"{n}-{name}")
                    print(f"{n} {name}: {outcome}", flush=True)
            seconds, sizes = time.perf_counter() - begin, f"{outcomes['read']:,} read, {outcomes['refused']:,} refused"
            n_findings += (n := outcomes.total() - outcomes["read"] - outcomes["refused"])
            print(f"{kind}, seed {arguments.seed}: {sizes}, {n} findings, {seconds:.0f} s, slowest {slowest:.3f} s")
    if n_findings:
        sys.exit(f"findings are in {findings}")
    shutil.rmtree(findings)


if __name__ == "__main__":
    main()

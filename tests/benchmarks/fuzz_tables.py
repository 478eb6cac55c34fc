"""Read mutated CSV and Parquet files in this process, and compare each with what a slow reader finds in it.

Of each file both must refuse it, or both must read the same labels, queries, names and values, to the bit. A crash, a
hang, an exception that is no sentence about the file, and a difference are findings; they are kept in a folder.
"""

import argparse
import csv
import io
import math
import os
import random
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz import HANG, cut, end, flip, insert, line, repeat, truncate

from moerank.data import load_table
from moerank.data.read.csv import MISSING

VALUES = [
    *("1", "-0.0", "+3.5", ".5", "5.", "1e5", "1E-400", "1e999", "1e308", "1e309", "0x10", "1_000", "1,5", "1 000"),
    *("nan", "NaN", "NULL", "null", "", "NA", "-", "inf", "-inf", "Infinity", "None", "none", "#N/A", "nul", "NAN"),
    *("True", "FALSE", "true", "1e", "e5", "1e+", "1.2.3", "9" * 30, "0." + "3" * 40, "1" * 400, " 7", "7 ", "\t7"),
    *("2020-01-01", "1d5", "1f", "0b1", "①", "１", "−1", "1\u00a0", "12345678901234567890", "9007199254740993", "--1"),
    *("4.35", "0.1e-6", "2.2250738585072011e-308", "5e-324", "2e-324", "179769313486231580793e289", "1e-5 ", "iNf"),
    *('"1"', '"', '""', "'1'", " "),
]
JUNK = [
    *(
        b",",
        b";",
        b"\t",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b" ",
        b'"',
        b'""',
        b"\xef\xbb\xbf",
        b"\\",
        b"#",
        b"\x1a",
        b"\x0c",
    ),
]


def base_csv(rng, separator=","):
    """A small table, written as somebody may have written it."""
    n_features = rng.randrange(1, 5)
    quote = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL))
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, quoting=quote, lineterminator=rng.choice(("\n", "\n", "\r\n", "\r")))
    order = rng.sample(range(n_features + 2), n_features + 2)
    names = ["label", "query", *(f"f{number}" for number in range(n_features))]
    writer.writerow([names[place] for place in order])
    ids = rng.choice((("7", "8", "9"), ("a", "b b", "c,d"), ("1", "02", "x"), ("-5", str(2**63), "true")))
    for query in ids:
        for _ in range(rng.randrange(1, 4)):
            values = [
                f"{rng.gauss(0, 1) * 10 ** rng.randrange(-5, 6):.{rng.randrange(1, 18)}g}" for _ in range(n_features)
            ]
            row = [str(rng.randrange(5)), query, *values]
            writer.writerow([row[place] for place in order])
    return text.getvalue().encode()


def value(text, rng):
    """Put another value in the place of a field."""
    rows = text.split(b"\n")
    place = rng.randrange(len(rows))
    fields = rows[place].split(b",")
    fields[rng.randrange(len(fields))] = rng.choice(VALUES).encode()
    rows[place] = b",".join(fields)
    return b"\n".join(rows)


def junk(text, rng):
    place = rng.randrange(len(text) + 1)
    return text[:place] + rng.choice(JUNK) * rng.choice((1, 1, 2)) + text[place:]


CSV_MUTATIONS = (value, value, value, value, junk, junk, flip, truncate, cut, repeat, insert, line, line)


def judge_csv(text, missing):
    """Read a CSV file value by value; None if it is no table of numbers."""
    if b"\0" in text:
        return None
    try:
        text = text.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    for separator in ",;\t":
        try:
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
        except csv.Error:
            continue
        if rows and {"label", "query"} <= set(rows[0]):
            break
    else:
        return None
    names, rows = (
        rows[0],
        [row for row in rows[1:] if row and not (len(row) == 1 and row[0] and not row[0].strip(" \t"))],
    )
    if len(set(names)) < len(names) or len(names) < 3 or "" in names or not rows:
        return None
    if any(name == "__index_level_0__" for name in names) or any(len(row) != len(names) for row in rows):
        return None
    if any(sign in name for name in names for sign in "\r\n"):  # the header is one line
        return None
    features = [place for place, name in enumerate(names) if name not in ("label", "query")]
    X, y, queries = [], [], []
    for row in rows:
        label = number(row[names.index("label")])
        if label is None or not 0 <= label < 2**31 or label != int(label) or not row[names.index("query")]:
            return None
        y.append(int(label))
        queries.append(row[names.index("query")])
        values = [missing if row[place] in MISSING else number(row[place]) for place in features]
        if None in values:
            return None
        X.append(values)
    return finish(X, y, queries, [names[place] for place in features])


def number(text):
    """The finite number that a text says, or None."""
    plain = text.strip(" \t")
    if "_" in plain or "n" in plain.lower() or not plain.isascii() or plain != plain.strip():
        return None
    try:
        return float(plain) if math.isfinite(float(plain)) else None
    except ValueError:
        return None


def finish(X, y, queries, names):
    """Queries as the reader gives them; None if one begins again."""
    runs = [query for place, query in enumerate(queries) if place == 0 or query != queries[place - 1]]
    if len(set(runs)) < len(runs):
        return None
    try:
        numbers = [int(query) for query in queries]
        if [str(query) for query in numbers] == queries and all(-(2**63) <= query < 2**63 for query in numbers):
            queries = numbers
    except ValueError:
        pass
    return np.array(X, np.float64), y, queries, names


def base_parquet(rng):
    """A small Parquet file; its pages have check sums, so that what they hold cannot change unseen."""
    n_rows = rng.randrange(3, 40)
    columns = {
        "label": pa.array([rng.randrange(5) for _ in range(n_rows)], rng.choice((pa.int8(), pa.int64(), pa.float64()))),
        "query": pa.array([row // 4 for row in range(n_rows)]).cast(rng.choice((pa.int32(), pa.int64(), pa.string()))),
    }
    for feature in range(rng.randrange(1, 4)):
        values = [None if rng.random() < 0.05 else rng.gauss(0, 1) for _ in range(n_rows)]
        columns[f"f{feature}"] = pa.array(values, rng.choice((pa.float64(), pa.float32())))
    written = io.BytesIO()
    pq.write_table(
        pa.table(columns),
        written,
        compression=rng.choice(("none", "snappy", "zstd", "gzip")),
        row_group_size=rng.choice((5, 100)),
        use_dictionary=rng.random() < 0.5,
        data_page_version=rng.choice(("1.0", "2.0")),
        write_page_checksum=True,
    )
    return written.getvalue()


PARQUET_MUTATIONS = (flip, flip, flip, truncate, cut, repeat, insert)


def judge_parquet(text, missing):
    """Read a Parquet file in one piece and look at it value by value; None if it is no table of numbers."""
    try:
        file = pq.ParquetFile(io.BytesIO(text), page_checksum_verification=True)
        table = file.read()
        if table.num_rows != file.metadata.num_rows:
            return None
        rows = [
            dict(zip(table.column_names, row, strict=True))
            for row in zip(*(c.to_pylist() for c in table.columns), strict=True)
        ]
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        return None
    names = table.column_names
    if (
        len(set(names)) < len(names)
        or not {"label", "query"} <= set(names)
        or len(names) < 3
        or not rows
        or "" in names
    ):
        return None
    features = [name for name in names if name not in ("label", "query")]
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    if not all(any(kind(table.schema.field(name).type) for kind in plain) for name in ("label", *features)):
        return None
    X, y = [], []
    for row in rows:
        label = row["label"]
        if label is None or not 0 <= label < 2**31 or label != int(label) or row["query"] is None:
            return None
        y.append(int(label))
        if isinstance(row["query"], bytes):
            row["query"] = row["query"].decode("utf-8", "replace")
        values = [missing if row[name] is None or row[name] != row[name] else float(row[name]) for name in features]
        if None in values or any(math.isinf(entry) for entry in values):
            return None
        X.append(values)
    return finish(X, y, [str(row["query"]) for row in rows], features)


def attack(kind, path, seed, n):
    """Make a mutated file and read it; return what it came to, and the file."""
    rng = random.Random(f"{seed} {kind} {n}")
    if kind == "csv":
        text, mutations, judge = base_csv(rng, rng.choice(",,,,;\t")), CSV_MUTATIONS, judge_csv
    else:
        text, mutations, judge = base_parquet(rng), PARQUET_MUTATIONS, judge_parquet
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        text = rng.choice(mutations)(text, rng)
    missing = rng.choice((None, None, -7.5))
    path.write_bytes(text)
    begin = time.process_time()
    try:
        data = load_table(path, label="label", query="query", missing=missing)
        outcome = "read"
    except ValueError as error:
        outcome = "refused" if str(path) in str(error) else f"finding: no file in {type(error).__name__}: {error}"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        outcome = f"finding: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error}"
    seconds = time.process_time() - begin
    if seconds > HANG:
        outcome = f"finding: {seconds:.1f} s"
    expected = judge(text, missing) if not outcome.startswith("finding") else None
    if outcome == "read" and (difference := what_differs(data, expected)):
        outcome = f"finding: read, but {difference}"
    if outcome == "refused" and expected is not None:
        outcome = "finding: refused, but it is right"
    return outcome, text


def what_differs(data, expected):
    """Say what differs from the slow reader, if anything does."""
    if expected is None:
        return "it is wrong"
    X, y, queries, names = expected
    if data.X.shape != X.shape or data.X.tobytes() != X.tobytes():
        return "with other values"
    found = (data.y.tolist(), data.qid.tolist(), list(data.feature_names))
    return "" if found == (y, queries, names) else "with other labels, queries or names"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=int, default=100_000)
    parser.add_argument("--parquet", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    kept = Path(tempfile.mkdtemp(prefix="fuzz-findings-"))
    n_findings = 0
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        for kind, n_files in (("csv", arguments.csv), ("parquet", arguments.parquet)):
            path, outcomes, begin = Path(name) / f"table.{kind}", Counter(), time.perf_counter()
            for number_of_file in range(n_files):
                outcome, text = attack(kind, path, arguments.seed, number_of_file)
                outcomes[outcome[:100]] += 1
                if outcome.startswith("finding") and outcomes[outcome[:100]] == 1:
                    (kept / f"{number_of_file}.{kind}").write_bytes(text)
                    print(f"{number_of_file} {kind}: {outcome[:300]}", flush=True)
            found = sum(count for outcome, count in outcomes.items() if outcome.startswith("finding"))
            n_findings += found
            print(
                f"{kind}: {n_files:,} files with seed {arguments.seed} in {time.perf_counter() - begin:.0f} s; "
                f"{outcomes['read']:,} read, {outcomes['refused']:,} refused, {found} findings",
                flush=True,
            )
    end(kept, n_findings)


if __name__ == "__main__":
    main()

"""Journals of a tiny search with a mutation, and what a resumed search may make of them; `fuzz.py` puts them through.

A journal whose check sums were not made anew may be refused by name, or give a beginning of the records that it had,
and the file is cut off behind them. One whose check sums were made anew may hold anything. Some of both are given to
a resumed search: it refuses them by name, or ends as the undisturbed one does, with one exception. A search measures
its archive again, and no other individuals. So where the value of an individual that the archive does not hold was
changed, the search may go another way unnoticed; then each member of its archive has its true values, which is
checked here, as in any other run. A journal with true values that were lost, doubled, moved, or given other times
has no such excuse.
"""

import json
import os
import re
import sys
import warnings
from hashlib import blake2b
from pathlib import Path

import numpy as np
from pymoo.algorithms.moo.nsga2 import NSGA2

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers.toy_search import WeighedBits, operators

from moerank.evolution import Journal, search

GENERATIONS, POPULATION, BITS, WIDTH = 5, 8, 20, 2
RESUMED = 8
"""One journal in so many goes through a search."""

HOLES = (2**20, 2**27, 2**40)
"""Bytes of zeros that some files have behind their end, without a place on the disk."""

PLACED = re.compile(
    r"record \d+ of journal|is not a journal of moerank|was written by other versions|belongs to another configuration|"
    r"holds wrong values"
)
NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1.0, 5e-324, 1e308, 1e-9, 0.5)


class Weighed(WeighedBits):
    """The weights are whole numbers, so the objectives of a row have the same bits in every batch."""

    def __init__(self):
        super().__init__(BITS)
        self.weight = np.rint(1000 * self.weight)

    def measure_again(self, X):
        return self.evaluate(X, return_values_of=["F"])


def evolve(journal, seed=3):
    algorithm = NSGA2(POPULATION, **operators())
    return search(Weighed(), algorithm, GENERATIONS, seed=seed, journal=journal)


def sealed(header, records):
    """The bytes of a journal, line by line: the header, then records of (elapsed, digests, values)."""
    chain, pieces = _sum(header), [header]
    for elapsed, digests, values in records:
        body = json.dumps([elapsed, [digest.hex() for digest in digests], values.tolist()]).encode()
        chain = _sum(chain, body)
        pieces.append(body + b" " + chain)
    return pieces


def _sum(*pieces):
    return blake2b(b"".join(pieces), digest_size=16).hexdigest().encode() + b"\n"


class Journals:
    """A target as others are (`fuzz.Target`), whose mutations know the records; `change` mutates plain bytes."""

    def __init__(self, folder, change):
        self.path = folder / "run.journal"
        self.change = change
        self.undisturbed = evolve(None)
        self.header, self.records = self._recorded(3)
        self.foreign = [self._recorded(seed, size) for seed, size in ((4, 1), (3, 2))]
        self.pieces = sealed(self.header, self.records)
        self.bases = [b"".join(self.pieces[:end]) for end in (6, 6, 5, 4, 2, 1)]
        self.forged, self.resume, self.hole, self.unnoticed = False, True, 0, 0

    def _recorded(self, seed, configuration=1):
        """The header and the records of a search, with times that do not depend on the clock."""
        self.path.unlink(missing_ok=True)
        journal = Journal(self.path, {"seed": seed, "grid": [configuration]})
        evolve(journal, seed)
        header = self.path.read_bytes().partition(b"\n")[0] + b"\n"
        journal.open(_about(seed), WIDTH)
        there = list(iter(journal.read, None))
        journal.close()
        journal.remove()
        return header, [(0.5 * k, r.digests, r.values) for k, r in enumerate(there)]

    def mutate(self, base, rng):
        """Return other bytes than those of a journal, and remember what they may come to."""
        self.forged = rng.random() < 0.5
        self.resume = rng.randrange(RESUMED) == 0
        self.hole = rng.choice(HOLES) if rng.random() < 0.02 else 0
        n_pieces = next(k for k in range(1, 7) if base == b"".join(self.pieces[:k]))
        if not self.forged:
            if rng.random() < 0.5:
                return self.change(base, rng)
            return b"".join(self._moved(self.pieces[:n_pieces], rng))
        header, records = self.header, list(self.records[: n_pieces - 1])
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            header, records = rng.choice(FORGERIES)(self, header, records, rng)
        text = b"".join(sealed(header, records))
        return self.change(text, rng) if rng.random() < 0.1 else text

    def _moved(self, pieces, rng):
        """Lose, double, exchange or lengthen pieces as they are, check sums included."""
        kind, last = rng.randrange(8), len(pieces) - 1
        place, other = rng.randint(0, last), rng.randint(0, last)
        foreign = sealed(*rng.choice(self.foreign))
        if kind == 0:
            del pieces[place]
        elif kind == 1:
            pieces.insert(other, pieces[place])
        elif kind == 2:
            pieces[place], pieces[other] = pieces[other], pieces[place]
        elif kind == 3:
            pieces[place] = foreign[place]
        elif kind == 4:
            pieces[0] = rng.choice(HEADERS).encode() + rng.choice((b"\n", b"", b"\0" * 40))
        elif kind == 5:
            pieces.append(rng.choice((bytes(rng.choice((1, 24, 25, 4096))), rng.randbytes(rng.randrange(1, 500)))))
        elif kind == 6:
            pieces[place] = json.dumps([rng.choice(NUMBERS)]).encode()[:-1] + pieces[place][pieces[place].find(b",") :]
        else:
            pieces[place] = pieces[place][: rng.randrange(len(pieces[place]))]
        return pieces

    def read(self):
        """Read the records as a resuming search does, some by one; assert what the docstring above says."""
        text = self.path.read_bytes()
        self._lengthen(text)
        there = None
        try:
            there = self._records()
            self._check_records(there, text)
        except ValueError as error:
            _check_place(error)
            if not self.resume:
                raise
        if self.resume:
            self.path.write_bytes(text)
            self._lengthen(text)
            self._resume(there)

    def _lengthen(self, text):
        if self.hole:
            os.truncate(self.path, len(text) + self.hole)

    def _journal(self):
        return Journal(self.path, {"seed": 3, "grid": [1]})

    def _records(self):
        journal = self._journal()
        try:
            journal.open(_about(3), WIDTH)
            # A search knows how many individuals it asks for; a hole would take long to read without that.
            numbers = iter([len(digests) for _, digests, _ in self.records] if self.hole else [])
            return list(iter(lambda: journal.read(next(numbers, None)), None))
        finally:
            journal.close()

    def _check_records(self, there, text):
        """Assert that what was read is what was written, and that the file ends behind it."""
        found = [(record.elapsed, record.digests, record.values) for record in there]
        right = b"".join(sealed(self.header, found))
        assert self.path.read_bytes() == right, "the file is not what was read"
        assert not any(np.isnan(values).any() for *_, values in found), "values that are no numbers"
        times = [0.0, *(elapsed for elapsed, *_ in found)]
        assert times == sorted(times) and times[-1] < np.inf, "times that are none"
        if self.forged:
            return
        assert self.bases[0].startswith(right), "other records"
        if not text.startswith(self.header):
            assert self.header.startswith(text.rstrip(b"\0")) and not self.hole, "a header that was never written"
        else:
            assert b"\n" not in text[len(right) :], "a record was cut off that is not torn"

    def _resume(self, there):
        """Assert that a search refuses the journal, or ends as it would without; `there` is None for one refused."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # of values that are infinite
                result = evolve(self._journal())
        except ValueError as error:
            _check_place(error)
            raise
        assert there is not None, "a search went on from a journal that cannot be read"
        if not self._differs(result):
            return
        altered = any(
            not np.array_equal(record.values, values)
            for record, (_, _, values) in zip(there, self.records, strict=False)
        )
        assert altered, "another result from true values"
        X, F = result.archive.X, result.archive.F
        assert np.array_equal(F, Weighed().measure_again(X)), "false values in the archive"
        self.unnoticed += 1

    def _differs(self, result):
        other = self.undisturbed
        pairs = [(one.pop.get("X"), one.pop.get("F"), one.archive.X, one.archive.F) for one in (result, other)]
        fronts = zip(result.history, other.history, strict=True)
        return not (
            all(np.array_equal(here, there) for here, there in zip(*pairs, strict=True))
            and all(a.n_eval == b.n_eval and np.array_equal(a.front, b.front) for a, b in fronts)
        )


def _about(seed):
    return {
        "algorithm class": "NSGA2",
        "seed of the search": seed,
        "variables": BITS,
        "objectives, inequalities, equalities": [WIDTH, 0, 0],
    }


def _check_place(error):
    assert PLACED.search(str(error)), f"no place in: {error}"


def _change_value(self, header, records, rng):
    if not (places := [k for k, record in enumerate(records) if record[2].size]):
        return header, records
    elapsed, digests, values = records[place := rng.choice(places)]
    values = values.copy()
    for _ in range(rng.choice((1, 1, 2, 16))):
        i, j = rng.randrange(len(values)), rng.randrange(WIDTH)
        old = values[i, j]
        others = (old + 1, old - 1, old * (1 + 1e-8), old + 1e-12, values[rng.randrange(len(values)), j])
        values[i, j] = rng.choice((*NUMBERS, *others, *others))
    records[place] = elapsed, digests, values
    return header, records


def _change_numbers(self, header, records, rng):
    if records:
        elapsed, digests, values = records[place := rng.randrange(len(records))]
        if rng.random() < 0.5:
            digests = digests[: rng.randrange(len(digests) + 1)]
            self.hole = rng.choice((0, 0, *HOLES))
        else:
            elapsed = rng.choice((*NUMBERS, elapsed + 0.25, elapsed + 10))
        records[place] = elapsed, digests, values
    return header, records


def _change_individuals(self, header, records, rng):
    """Lose, double, exchange or invent individuals of a record."""
    if not (places := [k for k, record in enumerate(records) if len(record[1]) == len(record[2]) > 0]):
        return header, records
    elapsed, digests, values = records[place := rng.choice(places)]
    rows = list(range(len(digests)))
    i, j = rng.choice(rows), rng.choice(rows)
    kind = rng.randrange(5)
    if kind == 0:
        rows.remove(i)
    elif kind == 1:
        rows.insert(j, i)
    elif kind == 2:
        rows[i], rows[j] = rows[j], rows[i]
    digests, values = [digests[row] for row in rows], values[rows]
    if kind == 3:
        digests[i], digests[j] = digests[j], digests[i]
    elif kind == 4:
        digests[i] = rng.randbytes(16)
    records[place] = elapsed, digests, values
    return header, records


def _change_order(self, header, records, rng):
    """Lose, double, exchange or add records."""
    if not records:
        return header, records
    place, other = rng.randrange(len(records)), rng.randrange(len(records))
    kind = rng.randrange(6)
    if kind == 0:
        del records[place]
    elif kind == 1:
        records.insert(other, records[place])
    elif kind == 2:
        records[place], records[other] = records[other], records[place]
    elif kind == 3:
        records.insert(place, rng.choice(rng.choice(self.foreign)[1]))
    elif kind == 4:
        records[place] = rng.choice(rng.choice(self.foreign)[1])
    else:
        records += [(records[-1][0], [], np.empty((0, WIDTH)))] * rng.choice((1, 4, 300))
    return header, records


def _change_header(self, header, records, rng):
    """Give the records the header of another search, or one that was changed by hand."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(self.foreign)[0], records
    if kind == 1:
        return rng.choice(HEADERS).encode() + b"\n", records
    return self.change(header.rstrip(b"\n"), rng) + b"\n", records


FORGERIES = (_change_value,) * 5 + (_change_numbers, _change_individuals, _change_order, _change_order, _change_header)

VERSIONED = '{"format": "moerank journal", "versions": %s, "configuration": %s}'
HEADERS = (
    *("", "{}", "[]", "null", "1", '"x"', "\ud7ff", "[" * 5000, '{"format":' * 3000, "[" * 2**20, " " * (2**20 + 5)),
    *(VERSIONED % pair for pair in (("{}", "{}"), ("[]", "{}"), ("null", "1"), ("{}", "[" * 900 + "]" * 900))),
    *(VERSIONED % pair for pair in (("{}", '{"a": NaN}'), ("{}", '{"\\ud800": 1}'), ('{"numpy": "\\u001b[2J"}', "{}"))),
    *(VERSIONED % pair for pair in (("{}", "9" * 6000), ("{}", '{"seed": %s}' % ("9" * 5000)), ('{"a": []}', "{}"))),
    VERSIONED % ("{}", '{"seed": ' + "[" * 700 + "]" * 700 + "}"),
    VERSIONED % ("{}", '{"' + "k" * 100_000 + '": 1}'),
    VERSIONED % ("{}", "{" + ",".join(f'"k{i}": {i}' for i in range(20_000)) + "}"),
)
"""What may stand in the first line instead."""

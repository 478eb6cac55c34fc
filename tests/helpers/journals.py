"""Journals made by hand, without a search: some records, and how to write and read them."""

import numpy as np

from moerank.evolution import Journal, Record

ABOUT = {"variables": 60}
CONFIGURATION = {"problem": "toy", "seed": 3, "grid": (1, 2)}
WIDTH = 3
OPENED = []
"""Journals that a test opened, to close them behind it."""


def records(n=6, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for k in range(n):
        size = int(rng.integers(0, 5)) if k else 3
        digests = [rng.bytes(16) for _ in range(size)]
        values = rng.normal(size=(size, WIDTH)) * 10.0 ** rng.integers(-300, 300)
        made.append(Record(0.5 * k, digests, values))
    made[0].values[0] = [np.inf, -0.0, 5e-324]
    return made


def opened(path, configuration=CONFIGURATION, about=ABOUT, **settings):
    OPENED.append(Journal(path, configuration, **settings))
    OPENED[-1].open(about, WIDTH)
    return OPENED[-1]


def write(path, content):
    journal = opened(path)
    while journal.read() is not None:
        pass
    for record in content:
        journal.append(record)
    journal.close()
    return path.read_bytes()


def read(path):
    journal = opened(path)
    try:
        return list(iter(journal.read, None))
    finally:
        journal.close()


def same(here, there):
    return len(here) == len(there) and all(
        one.elapsed == other.elapsed and one.digests == other.digests and one.values.tobytes() == other.values.tobytes()
        for one, other in zip(here, there, strict=True)
    )

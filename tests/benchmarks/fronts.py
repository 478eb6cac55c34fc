"""Better reference fronts for the suite moerank-6, from studies of searches and from all small subsets.

    moerank searches moerank-6 --algorithms nsga2,staircase --evaluations 100000 --seeds 11 --out DIR
    python tests/benchmarks/fronts.py --searches DIR --evaluations 100000 --algorithms nsga2,staircase [--exhaustive K]

Merges the fronts of the finished runs in DIR, and of all subsets of up to K features, into
problems/reference_fronts.json, and prints for each problem how many members are new. So far the references hold 11
runs of 10,000 evaluations of every sparse search, 11 of 100,000 of nsga2 and of staircase, hundreds of runs of
prototypes, and all subsets of up to 4 features on planted, mq2008 and ohsumed, 3 on digits and mslr, 2 on web. Never
fails a build.
"""

from __future__ import annotations

import argparse
import json
import os
from itertools import combinations
from pathlib import Path

import numpy as np

from moerank.evolution import Archive
from moerank.studies.searches import SUITES, SearchStudy, load_suite

REFERENCES = Path(__file__).resolve().parents[2] / "problems" / "reference_fronts.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("MOERANK_DATA"))
    parser.add_argument("--searches", type=Path, required=True, help="folder of the study")
    parser.add_argument("--algorithms", default="nsga2,staircase")
    parser.add_argument("--evaluations", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=11)
    parser.add_argument("--exhaustive", type=int, default=0, metavar="K")
    arguments = parser.parse_args()
    stored = json.loads(REFERENCES.read_text(encoding="utf-8"))
    stages, _ = load_suite(SUITES["moerank-6"], arguments.data)
    budget = {"n_evaluations": arguments.evaluations, "seeds": arguments.seeds}
    study = SearchStudy(stages, arguments.algorithms.split(","), arguments.searches, **budget)
    for name, stage in stages.items():
        packed = [bytes.fromhex(string) for string in stored[name]]
        archive, n_bytes = Archive(), len(packed[0])
        rows = np.frombuffer(b"".join(packed), np.uint8).reshape(-1, n_bytes)
        strings = [np.unpackbits(rows, axis=1, count=stage.n_var).view(bool)]
        strings += [np.array(run.X) > 0 for cell, run in study.runs().items() if cell.problem_name == name]
        for size in range(1, arguments.exhaustive + 1):
            chosen = np.array(list(combinations(range(stage.n_var), size)))
            strings += [
                np.eye(stage.n_var, dtype=bool)[part].any(axis=1)
                for part in np.array_split(chosen, 1 + len(chosen) // 4096)
            ]
        for X in strings:
            archive.add(X, stage.measure(X))
        order = np.lexsort(archive.F.T[::-1])
        stored[name] = [np.packbits(row).tobytes().hex() for row in archive.X[order]]
        new = set(stored[name]) - {row.hex() for row in packed}
        print(f"{name}: {len(archive)} members, {len(new)} of them new")
    REFERENCES.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

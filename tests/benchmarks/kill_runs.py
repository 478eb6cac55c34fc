"""Kill single runs at random moments, resume them, and compare what they end with to undisturbed runs.

    python tests/benchmarks/kill_runs.py [--kills 200] [--seed 0]

MOFSRank on a small planted problem with every algorithm of the table. A run is killed up to four times before it may
end, and runs are begun until there are as many kills as asked for and each pair of stage and algorithm had two. Prints
how many kills each pair had, and what differs; exit code 1 if anything does, or if a memo stays behind.
"""

import collections
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import frame
import joblib

from moerank.data import load_planted_fold
from moerank.evolution import ALGORITHMS
from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.mofsrank.settings import STAGES

BUDGET = {"population": 16, "generations": 12}


PAIRS = [(name, stage) for name in ALGORITHMS for stage in STAGES]


def run(algorithm, memo, resume):
    """Return a fitted solver."""
    train, vali, _ = load_planted_fold(1, n_queries=25, n_documents=14, n_relevant=3, n_redundant=2, n_noise=3, seed=5)
    return MOFSRank(
        metric=NDCG(5), instance_selection=BUDGET, feature_selection=BUDGET, ensemble=BUDGET, random_state=0,
        algorithm=algorithm, memo=memo, resume=resume,
    ).fit(train.X, train.y, qid=train.qid, validation=vali)  # fmt: skip


def digest(solver):
    """Return a digest of every bit of the result but the times."""
    stages = [(solver.fronts_[s], solver.history_[s].drop(columns="seconds").to_numpy()) for s in STAGES]
    front = solver.front_[["error", "validation"]].to_numpy(), solver.front_["features"].tolist(), solver.front_coefs_
    return joblib.hash((stages, front, solver.coef_, solver.support_, solver.chosen_, solver.n_evaluations_))


def child(algorithm, memo, resume, out):
    out.write_text(digest(run(algorithm, memo, resume)))


def under_way(folder):
    """Return the last stage that has begun."""
    return next((stage for stage in reversed(STAGES) if (folder / f"memo.{stage}").exists()), None)


def killed_in(process, folder, stage, seconds):
    """Kill the process within so many seconds after a stage has begun; return the stage that it was in."""
    while process.is_alive() and not (folder / f"memo.{stage}").exists():
        time.sleep(0.001)
    process.join(seconds)
    if process.is_alive():
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    return under_way(folder) if process.exitcode == -signal.SIGKILL else None


def main():
    arguments = frame.arguments(__doc__, kills=200, seed=0)
    rng = random.Random(arguments.seed)
    fork = multiprocessing.get_context("fork")  # what is compiled and imported here need not be again
    kills, runs, wrong, expected, lasted = collections.Counter(), 0, [], {}, {}
    for name in ALGORITHMS:
        run(name, None, False)  # compiles, which would lengthen the times
        solver = run(name, None, False)
        expected[name] = digest(solver)
        lasted[name] = {stage: solver.history_[stage]["seconds"].iloc[-1] for stage in STAGES}
    with tempfile.TemporaryDirectory() as scratch:
        while kills.total() < arguments.kills or min(kills[pair] for pair in PAIRS) < 2:
            for name in ALGORITHMS:
                folder = Path(scratch, str(runs))
                folder.mkdir()
                runs += 1
                out, memo = folder / "out", folder / "memo"
                stages = sorted((rng.choice(STAGES) for _ in range(rng.randint(1, 4))), key=STAGES.index)
                for number, stage in enumerate([*stages, None]):
                    process = fork.Process(target=child, args=(name, memo, number > 0, out))
                    process.start()
                    if stage is None:
                        process.join()
                    elif hit := killed_in(process, folder, stage, rng.uniform(0, 1.2 * lasted[name][stage])):
                        kills[name, hit] += 1
                    if out.exists():
                        break
                # The memos stay, since what becomes of a result is not the solver's own; nothing else does.
                left = {path.name for path in folder.iterdir()} - {f"memo.{stage}" for stage in STAGES}
                if left != {"out"} or out.read_text() != expected[name]:
                    wrong.append((name, stages, left))
            print(f"{runs} runs, {kills.total()} kills, {len(wrong)} differ", flush=True)
    for name in ALGORITHMS:
        print(f"{name:15}", *(f"{stage} {kills[name, stage]}" for stage in STAGES))
    print(f"differing: {wrong or 'none'}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

"""The kernels that runs call, and their record.

    python tests/helpers/kernel_calls.py [--record]

Prints, as JSON, which kernels runs of two problems call. With --record it also runs all solvers, and
data in single precision, measures how long new kernels take to compile, and writes signatures.json.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np

import moerank as mr
from moerank.kernels import compiled
from moerank.kernels.compiled import Kernel
from moerank.runs.draft import data_remarks
from moerank.runs.problem import load_problem
from moerank.runs.run_fold import run_fold
from moerank.solvers import solvers

SHORT = {f"{stage}.generations": 3 for stage in ("instance_selection", "feature_selection", "ensemble")}
RUNS = {"digits": "pairs", "shop": "steps"}
SIZES = {
    "digits": SHORT | {"data.n_queries": 30, "data.n_documents": 30},
    "shop": {"feature_selection.generations": 3, "ensemble.generations": 3, "data.n_queries": 40},
}


def called():
    """Return names and types of the arguments of all kernels that this process has called or compiled."""
    modules = [module for name, module in sys.modules.items() if name.startswith("moerank.kernels.")]
    kernels = {id(entry): entry for module in modules for entry in vars(module).values() if isinstance(entry, Kernel)}
    return sorted(
        (f"{kernel.py_func.__module__.rpartition('.')[2]}.{kernel.py_func.__qualname__}", str(types))
        for kernel in kernels.values()
        for types in kernel.overloads
    )


def calls_of_a_run(problem):
    """Return the names and types of the kernels that `moerank run` calls for a problem.

    Where its code is on disk, a kernel does not load the kernels that it calls. What is not recorded brings them along.
    """
    compiled.compile_ahead(("front", RUNS[problem]), 2)
    chosen = load_problem(problem, SIZES[problem])
    data_remarks(chosen.load_fold(1), chosen.metric.make())
    run_fold(chosen, 1, chosen.solver.name)
    return called()


def calls_of_runs():
    """Return the names and types of the kernels that both of two runs call, and that one of them calls alone."""
    command = [sys.executable, __file__]
    runs = [
        {tuple(entry) for entry in json.loads(subprocess.run([*command, name], check=True, capture_output=True).stdout)}
        for name in RUNS
    ]
    groups = {"front": runs[0] & runs[1], "pairs": runs[0] - runs[1], "steps": runs[1] - runs[0]}
    return {group: sorted(entries) for group, entries in groups.items()}


def call_others():
    """Run all solvers, and data in single precision and from a file."""
    for name in solvers():
        run_fold(load_problem("planted", SHORT | {"data.n_queries": 100}), 1, name, baselines=False)
    parts = mr.load_planted_fold(1)
    single = [mr.RankingData(part.X.astype(np.float32), part.y, part.qid) for part in parts]
    for backend in (mr.RankRLS(), mr.RankSVM(), mr.FSMRank()):
        solver = mr.MOFSRank(
            backend=backend, random_state=0, **{stage.split(".")[0]: {"generations": 3} for stage in SHORT}
        )
        solver.fit(single[0], validation=single[1]).verdict(single[2])
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("1 qid:1 1:1 2:2\n0 qid:1 1:0.5 2:3\n")
        file.flush()
        mr.load_letor(file.name)


def seconds(name, types):
    """Return how long a kernel takes to compile where no code is on disk."""
    code = (
        "import sys, time; from moerank.kernels.compiled import _compile, _kernel; _kernel(sys.argv[1]); "
        "begin = time.process_time(); _compile(*sys.argv[1:]); print(time.process_time() - begin)"
    )
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "NUMBA_CACHE_DIR": empty}
        done = subprocess.run(
            [sys.executable, "-c", code, name, types], env=environment, capture_output=True, text=True
        )
    return round(float(done.stdout or 1.0), 2)


def is_plain(types):
    """Whether the types can be read; those of named tuples and functions cannot."""
    try:
        return bool(compiled._types(types))
    except (SyntaxError, NameError, TypeError):
        return False


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1:] and sys.argv[1] in RUNS:
        print(json.dumps(calls_of_a_run(sys.argv[1])))
        return
    before = json.loads(compiled.RECORDED.read_text())
    if "--record" in sys.argv:  # the record may name kernels that are no more
        compiled.RECORDED.write_text(json.dumps({group: [] for group in before}))
    groups = calls_of_runs()
    if "--record" in sys.argv:
        listed = [entry for group in groups.values() for entry in group]
        call_others()
        groups["others"] = [entry for entry in called() if entry not in listed and is_plain(entry[1])]
        times = {(name, types): taken for entries in before.values() for name, types, taken in entries}
        timed = {
            group: sorted(
                ([*entry, times.get(tuple(entry)) or seconds(*entry)] for entry in entries), key=lambda entry: -entry[2]
            )
            for group, entries in groups.items()
        }
        lines = (
            f' "{group}": [\n' + ",\n".join(f"  {json.dumps(entry)}" for entry in entries) + "\n ]"
            for group, entries in timed.items()
        )
        compiled.RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(json.dumps(groups))


if __name__ == "__main__":
    main()

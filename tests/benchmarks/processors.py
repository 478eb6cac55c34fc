"""Do all solvers give the same bits on other processors? Prints which do not, and how far their scores lie apart.

    python tests/benchmarks/processors.py [--sets planted digits mq2008 ohsumed] [--solvers …] [--settings …]

The first setting is the reference. Each setting lets this processor pretend to be an older one, for one library:
OpenBLAS, NumPy or numba, whose kernels are compiled anew for it. OpenBLAS for AVX-512 (SkylakeX) ends with an illegal
instruction on a processor without it. Every solver fits fold 1 with a small budget. Never fails a build.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import frame
import numpy as np

from moerank.runs.problem import load_problem
from moerank.solvers import make_solver, solvers

SETTINGS = {
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
    "NumPy": {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V3"},
    "numba": {"OPENBLAS_CORETYPE": "Haswell", "NUMBA_CPU_NAME": "generic"},
}
STAGES = ("instance_selection", "feature_selection", "ensemble")
SMALL = {
    "mofsrank": {f"{stage}__{key}": 10 for stage in STAGES for key in ("population", "generations")},
    **{name: {"n_trees": 5} for name in ("lambdamart", "bl-mart")},
}


def fitted(name, train, validation):
    """Return the arrays of a front, or the weights or scores of a ranker, of a solver with a small budget."""
    known = make_solver(name)
    wanted = SMALL.get(name.split("-")[0], SMALL.get(name, {}))
    if "random_state" in known.get_params():
        wanted = {"random_state": 0, **wanted}
    known.set_params(**{key: value for key, value in wanted.items() if key in known.get_params()})
    known.fit(train, validation=validation)
    weights = getattr(known, "front_coefs_", getattr(known, "coef_", None))
    found = {"weights": known.predict(validation.X) if weights is None else weights}
    return found | ({"front": known.front_support_} if hasattr(known, "front_support_") else {})


def fit_all(sets, names, path):
    """Fit in this process and write the arrays."""
    found = {}
    for each in sets:
        train, validation, _ = load_problem(each).load_fold(1)
        for name in names:
            try:
                arrays = fitted(name, train, validation)
            except ValueError as error:
                print(f"{each} {name}: {error}", file=sys.stderr)
                continue
            found.update({f"{each} {name} {key}": np.asarray(value) for key, value in arrays.items()})
    np.savez(path, **found)


def run(setting, options):
    """Fit in a process with the setting and return the arrays by problem, solver and kind; None if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"NUMBA_CACHE_DIR": folder} if "NUMBA_CPU_NAME" in SETTINGS[setting] else {}
        path = Path(folder, "found.npz")
        command = [sys.executable, __file__, "--sets", *options.sets, "--solvers", *options.solvers, "--write", path]
        subprocess.run(command, env={**os.environ, **SETTINGS[setting], **own}, check=False)
        if not path.exists():
            return None
        with np.load(path) as arrays:
            return dict(arrays)


def distance(a, b):
    """Return the largest difference, in units of the largest number."""
    if a.shape != b.shape:
        return np.inf
    return np.abs(a.astype(float) - b).max(initial=0.0) / max(np.abs(a).max(initial=0.0), np.finfo(float).tiny)


if __name__ == "__main__":
    every = ["planted", "digits", "mq2008", "ohsumed"]
    options = frame.arguments(__doc__, sets=every, solvers=list(solvers()), settings=list(SETTINGS), write="")
    if options.write:
        fit_all(options.sets, options.solvers, options.write)
        sys.exit()
    first, *others = options.settings
    reference = run(first, options)
    for setting in others:
        found = run(setting, options)
        if found is None:
            print(f"{setting}: does not run here")
            continue
        differing = {key: value for key, value in reference.items() if found[key].tobytes() != value.tobytes()}
        print(f"{setting}: {len(differing)} of {len(reference)} arrays differ from {first}")
        for key, value in differing.items():
            print(f"  {key}: {distance(value, found[key]):.1e}")

"""Run moerank where machines misbehave, and on data of extreme shapes, and see what it says and what differs.

    python tests/benchmarks/attacks.py [clocks caches memory wide queries notebook] [--rounds 20]

clocks    Runs whose clock jumps by up to a day, forwards and back, against an undisturbed run.
caches    Pairs of processes that fill one empty cache of tables at the same moment, and read the table back.
memory    Runs under limits of 4000 to 1000 MiB, in which the libraries just fit: each ends well or in a sentence.
wide      Every solver on 100 documents with 100,000 features: it ends well, or refuses in a sentence.
queries   A search on two million queries of two documents: seconds and peak memory.
notebook  A real kernel of Jupyter: a fit, an interrupt, a resumed fit, and a study of two workers.

Exit code 1 if anything differs, or ends in another way.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TINY = """
name = "tiny"
[data]
source = "planted"
n_queries = 40
[instance_selection]
population = 12
generations = 8
[feature_selection]
population = 12
generations = 8
[ensemble]
population = 12
generations = 8
"""
RUN = ["-m", "moerank", "run", "tiny.toml", "--quiet", "--out"]
IN_SENTENCES = (0, 1, 2, 130)
"""Exit codes of the command; a crash has another one."""


def python(*arguments, folder, code="", **environment):
    """Start Python with code that runs before the program."""
    (folder / "sitecustomize.py").write_text(code)
    paths = os.pathsep.join(filter(None, [str(folder), os.getcwd(), os.getenv("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(folder):
    """Return the stored result of a run without what may differ."""
    result = json.loads((folder / "result.json").read_text())
    return {name: result[name] for name in ("front", "chosen", "per_query", "verdict") if name in result}


def clocks(scratch, rounds):
    """Yield what differs in runs whose clock jumps."""
    (scratch / "tiny.toml").write_text(TINY)
    python(*RUN, "calm", folder=scratch).communicate()
    expected = outcome(scratch / "calm")
    for number in range(rounds):
        code = (
            f"import random, time\ndraw, real, jump = random.Random({number}), time.time, [0.0]\n"
            "def jumping():\n    if draw.random() < 0.2: jump[0] = draw.uniform(-86400, 86400)\n"
            "    return real() + jump[0]\ntime.time = jumping\n"
        )
        process = python(*RUN, f"round{number}", folder=scratch, code=code)
        _, errors = process.communicate()
        if process.returncode != 0 or outcome(scratch / f"round{number}") != expected:
            yield f"round {number}: exit code {process.returncode} {errors[-300:]}"


def caches(scratch, rounds):
    """Yield what differs between two processes that fill one cache."""
    lines = (f"{k % 3} qid:{k // 20} " + " ".join(f"{j}:{(k * j) % 97}.5" for j in range(1, 47)) for k in range(20000))
    (scratch / "train.txt").write_text("\n".join(lines))
    os.utime(scratch / "train.txt", (1e9, 1e9))
    time.sleep(3)  # a file that has just changed is not kept
    code = "import moerank as mr, zlib; print(zlib.crc32(mr.load_letor('train.txt').X.tobytes()))"
    digests = set()
    for number in range(rounds):
        cache = scratch / f"cache{number}"
        pair = [python("-c", code, folder=scratch, MOERANK_CACHE=str(cache)) for _ in range(2)]
        pair.append(python("-c", code, folder=scratch, MOERANK_CACHE=str(cache)))
        for process in pair:
            digest, errors = process.communicate()
            digests.add(digest)
            if process.returncode != 0 or errors or len(digests) > 1:
                yield f"round {number}: {errors[-300:] or digests}"
        if left := [path for path in cache.rglob("*") if path.is_file() and ".tmp" in path.name]:
            yield f"round {number}: left behind {left}"


def memory(scratch, rounds):
    """Yield what crashes under a limit of memory."""
    (scratch / "tiny.toml").write_text(TINY)
    ended = []
    for number in range(rounds):
        mebibytes = 4000 - number * 3000 // rounds
        code = f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({mebibytes} << 20,) * 2)\n"
        process = python(*RUN, f"limit{mebibytes}", folder=scratch, code=code)
        _, errors = process.communicate()
        ended.append((mebibytes, process.returncode))
        if process.returncode not in IN_SENTENCES or (process.returncode and "Traceback" in errors):
            yield f"{mebibytes} MiB: exit code {process.returncode} {errors[-300:]}"
    print("exit codes by MiB:", ended)


def wide(scratch, rounds):
    """Yield the solvers that end otherwise than well or in a sentence."""
    code = """
import sys, warnings, numpy as np, moerank as mr
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
train = mr.RankingData(rng.normal(size=(100, 100_000)), rng.integers(0, 2, 100), np.arange(100) // 10)
options = {"n_features": 5} if "n_features" in mr.make_solver(sys.argv[1]).get_params() else {}
try:
    mr.make_solver(sys.argv[1], **options).fit(train, validation=train)
except (ValueError, MemoryError) as error:
    assert len(str(error)) > 20, repr(error)
    print("refused:", error)
"""
    from moerank.solvers import solvers

    for name in solvers():
        process = python("-c", code, name, folder=scratch)
        begin = time.monotonic()
        try:
            said, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            said, errors = "still at work after 60 s\n", ""
        print(f"{name:24} {time.monotonic() - begin:5.1f} s {said.strip()[:150]}", flush=True)
        if process.returncode not in (0, None, -9):
            yield f"{name}: {errors[-300:]}"


def queries(scratch, rounds):
    """Yield what goes wrong on two million queries."""
    code = """
import time, resource, numpy as np, moerank as mr
rng = np.random.default_rng(0)
n = 4_000_000
train = mr.RankingData(rng.normal(size=(n, 5)).astype(np.float32), np.arange(n) % 2, np.arange(n) // 2)
stage = {"population": 10, "generations": 5}
begin = time.process_time()
stages = dict(instance_selection=False, feature_selection=stage, ensemble=stage)
solver = mr.MOFSRank(metric=mr.NDCG(2), random_state=0, **stages)
solver.fit(train)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(f"{solver.support_.sum()} features, {time.process_time() - begin:.0f} s of the processor, {peak:.1f} GiB")
"""
    process = python("-c", code, folder=scratch)
    said, errors = process.communicate()
    print(said.strip())
    if process.returncode:
        yield errors[-500:]


def notebook(scratch, rounds):
    """Yield what a notebook shows otherwise than it should."""
    import threading

    from jupyter_client.manager import start_new_kernel

    os.environ["PYTHONPATH"] = os.getcwd()
    manager, client = start_new_kernel(cwd=str(scratch))

    def cell(code, interrupted_after=None):
        """Run a cell; return what it printed, and the name of its error."""
        texts = []
        if interrupted_after is not None:
            threading.Timer(interrupted_after, manager.interrupt_kernel).start()

        def hook(message):
            texts.append(message["content"].get("text", ""))

        reply = client.execute_interactive(code, output_hook=hook, timeout=600)
        return "".join(texts), reply["content"].get("ename")

    fit = (
        "stage = {'population': 40, 'generations': 400}\n"
        "def fitted(**more): return mr.MOFSRank(backend=mr.RankSVM(), instance_selection=False, feature_selection="
        "stage, ensemble=stage, random_state=0, tune=False, **more).fit(train, validation=vali)\n"
    )
    try:
        cell("import moerank as mr\ntrain, vali, test = mr.load_digits_fold(1)\n" + fit)
        whole, error = cell("print(fitted().coef_.tobytes().hex())")
        if error:
            yield f"fit: {error}"
        for number in range(rounds):
            begin = time.monotonic()
            _, error = cell(f"fitted(memo='j{number}')", interrupted_after=random.Random(number).uniform(0.2, 2))
            again, failed = cell(f"print(fitted(memo='j{number}', resume=True).coef_.tobytes().hex())")
            if failed or again != whole or error not in ("KeyboardInterrupt", None):
                yield f"interrupt {number} after {time.monotonic() - begin:.1f} s: {error} {failed}"
        study = (
            "class Mine(mr.RankRLS):\n    version = '1'\n"
            "if __name__ == '__main__':\n"
            "    study = mr.Study(['planted'], {'mine': Mine(), 'rankrls': 'rankrls'}, 'study')\n"
            "    print(len(study.run(workers=2).results()))"
        )
        said, error = cell(study)
        if error or not said.strip().endswith("10"):
            yield f"study: {error} {said[-300:]}"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


ATTACKS = {work.__name__: work for work in (clocks, caches, memory, wide, queries, notebook)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attacks", nargs="*", choices=[*ATTACKS, []], help="all without a name")
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    wrong = False
    for name in arguments.attacks or ATTACKS:
        with tempfile.TemporaryDirectory() as scratch:
            begin = time.monotonic()
            found = list(ATTACKS[name](Path(scratch), arguments.rounds))
        print(f"{name}: {len(found)} findings in {time.monotonic() - begin:.0f} s", *found, sep="\n  ", flush=True)
        wrong = wrong or bool(found)
    sys.exit(wrong)


if __name__ == "__main__":
    main()

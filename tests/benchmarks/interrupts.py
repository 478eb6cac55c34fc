"""Send Ctrl-C to commands at random moments, and print how long they take to end.

    python tests/benchmarks/interrupts.py [COMMAND...] [--times 50] [--data DIR] [--seed 0]

A command is a key of COMMANDS; by default all. Each begins anew in an empty folder, and is interrupted at a moment
within its usual time. Exit code 1 if one ends without the notice, with another code than 130, or leaves a process of
its group for more than ten seconds.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMANDS = {
    "run mq2008": (1.5, 6.0),
    "run ohsumed": (1.5, 6.0),
    "run digits": (1.5, 6.0),
    "study digits --solvers mofsrank --workers 2": (1.5, 10.0),
}
"""Commands, and the seconds between which they are interrupted."""


def gone(group):
    """Return whether a group of processes ends within ten seconds: a worker looks for its parent once a second."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    os.killpg(group, signal.SIGKILL)
    return False


def interrupted(command, data, after):
    """Return the seconds that a command took to end, and what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "moerank", *command.split(), "--data", str(data), "--out", f"{folder}/out"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        time.sleep(after)
        began = time.perf_counter()
        process.send_signal(signal.SIGINT)
        code = process.wait()
        seconds = time.perf_counter() - began
        if not gone(process.pid):
            return seconds, "left a process"
        said = process.stderr.read().decode()
        well = code == 130 and "Interrupted. Nothing that was finished is lost" in said and "Traceback" not in said
        return seconds, "" if well else f"exit code {code}: {said[-300:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="*", default=list(COMMANDS), metavar="COMMAND")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--data", type=Path, default=os.getenv("MOERANK_DATA"))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw, failed = random.Random(arguments.seed), False
    for command in arguments.commands:
        taken = []
        for _ in range(arguments.times):
            seconds, wrong = interrupted(command, arguments.data, draw.uniform(*COMMANDS[command]))
            taken.append(1000 * seconds)
            if wrong:
                failed = True
                print(f"{command}: {wrong}", flush=True)
        taken.sort()
        print(
            f"{command}: median {taken[len(taken) // 2]:.0f} ms, worst {taken[-1]:.0f} ms of {len(taken)}", flush=True
        )
    sys.exit(failed)


if __name__ == "__main__":
    main()

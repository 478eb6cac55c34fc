"""Schedulers and workers of Dask, each a process of its own that a test may kill."""

import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest


@contextmanager
def dask_process(kind, *arguments):
    """Start a "scheduler" or a "worker"; yield the process, which is killed in the end, and its address."""
    places = filter(None, [os.getcwd(), os.getenv("PYTHONPATH")])
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments, "--no-dashboard"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    address = next(match[0] for line in process.stderr if (match := re.search(r"tcp://127\.0\.0\.1:\d+", line)))
    reading = threading.Thread(target=process.stderr.read, daemon=True)  # a full pipe would stop it
    reading.start()
    try:
        yield process, address
    finally:
        process.kill()
        process.wait()
        reading.join()
        process.stderr.close()


@pytest.fixture(scope="module")
def scheduler():
    """The process of a scheduler without workers, and its address."""
    with dask_process("scheduler", "--host", "127.0.0.1", "--port", "0") as process_and_address:
        yield process_and_address


WORKER = ("--nthreads", "1", "--no-nanny")

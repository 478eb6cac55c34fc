"""New processes that have numba loaded already, as forks of one: a test can start many of them in a second."""

import json
import os
import select
import socket
import subprocess
import sys

SERVER = """
import json, os, socket, sys, tempfile, traceback
from contextlib import suppress
import numba

numba.njit(lambda x: x + 1)(1)  # loads what the compiler needs at its first use
asked = socket.socket(fileno=int(sys.argv[1]))


def run(code, environment, folder):
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    numba.config.reload_config()  # read from the environment when numba was loaded, as the next three were
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    sys.dont_write_bytecode = True
    tempfile.tempdir = None
    try:
        exec(code, {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


while True:
    message, (*pipes,), *_ = socket.recv_fds(asked, 2**20, 3)
    if not message:
        break
    if os.fork() == 0:  # a process that waits for the one that runs
        output, errors, status = pipes
        asked.close()
        worker = os.fork()
        if worker == 0:
            os.dup2(output, 1), os.dup2(errors, 2)
            for pipe in pipes:
                os.close(pipe)
            code = run(*json.loads(message))
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        os.write(status, str(code).encode())
        os._exit(0)
    for pipe in pipes:
        os.close(pipe)
with suppress(ChildProcessError):
    while True:
        os.wait()
"""


class Fork:
    """A process that was started; what it says must fit in a pipe."""

    def __init__(self, pipes):
        self._pipes = pipes
        self.returncode = None

    def communicate(self, timeout=100):
        """Return what was said on standard output and on standard error, once the process has ended."""
        assert select.select([self._pipes[2]], [], [], timeout)[0], "the process does not end"
        said = []
        for pipe in self._pipes:
            with open(pipe, encoding="utf-8") as file:
                said.append(file.read())
        self.returncode = int(said.pop())
        return tuple(said)


class Forks:
    """A process that has loaded numba and nothing of moerank, and its forks."""

    def __init__(self):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-c", SERVER, str(theirs.fileno())]
        self._server = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()

    def start(self, code, environment, folder):
        """Run code in a new process with this environment, of which PYTHONPATH comes first, in a folder."""
        ours, theirs = zip(*[os.pipe() for _ in range(3)], strict=True)
        socket.send_fds(self._socket, [json.dumps([code, environment, str(folder)]).encode()], theirs)
        for pipe in theirs:
            os.close(pipe)
        return Fork(ours)

    def close(self):
        """End the process that the others are forks of."""
        self._socket.close()
        self._server.wait()

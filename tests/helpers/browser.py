"""A headless Chromium that is told what to do over a pipe, and tells what it requested and what went wrong."""

import fcntl
import json
import os
import shutil
import subprocess
import time

import pytest


class Browser:
    """One page; `requests` has the addresses of all that it asked for, `errors` what its console said."""

    def __init__(self, folder, width=1000, height=900):
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if program is None:
            pytest.skip("no Chromium is installed")
        (theirs, self._to), (self._from, ours) = os.pipe(), os.pipe()
        read, write = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs, ours))  # away from 3 and 4
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        options += [f"--window-size={width},{height}", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(
            [program, *options],
            pass_fds=(3, 4),
            preexec_fn=lambda: (os.dup2(read, 3), os.dup2(write, 4)),
            stderr=subprocess.DEVNULL,
        )
        for end in (theirs, ours, read, write):
            os.close(end)
        self._number, self._rest, self._session = 0, b"", None
        self.requests, self.errors = [], []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **parameters):
        """Return the answer to a command of the DevTools protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                heard = os.read(self._from, 1 << 16)
                assert heard, "the browser has ended"
                self._rest += heard
            line, _, self._rest = self._rest.partition(b"\0")
            heard = json.loads(line)
            if heard.get("id") == self._number:
                assert "error" not in heard, heard
                return heard["result"]
            self._keep(heard.get("method"), heard.get("params"))

    def _keep(self, event, parameters):
        if event == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        if event in ("Runtime.exceptionThrown", "Log.entryAdded") or (
            event == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning")
        ):
            self.errors.append(parameters)

    def value(self, expression):
        """Return the value of JavaScript."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression, seconds=60):
        """Return the value of JavaScript as soon as it is true."""
        end = time.monotonic() + seconds
        while not (value := self.value(expression)):
            assert time.monotonic() < end, (expression, self.value("document.body.innerText"), self.errors)
            time.sleep(0.1)
        return value

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._process.terminate()
        self._process.wait()
        os.close(self._to), os.close(self._from)

"""Search engines from published artifacts, started on 127.0.0.1."""

import os
import re
import subprocess
import tempfile
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shutil import copytree, which

import pytest

HERE = Path(__file__).parent
OPTIONS = ("TieredStopAtLevel=1", "+UseSerialGC", "+UnlockDiagnosticVMOptions", "-BytecodeVerificationRemote")
JAVA = ("java", *map("-XX:{}".format, OPTIONS))
"""Java that compiles and verifies little, as what it serves takes a second."""


@cache
def class_paths():
    """Return the jars of each engine as Maven downloads them; without an answer of Maven the test is skipped."""
    if lacking := [name for name in ("mvn", "java", "curl") if not which(name)]:
        pytest.skip(f"{lacking[0]} is not installed")
    with tempfile.TemporaryDirectory() as folder:
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={folder}/${{project.artifactId}}"]
        command = ["mvn", "-q", "-B", "-f", HERE / "pom.xml", *goal]
        try:
            environment = {"MAVEN_OPTS": " ".join(JAVA[1:]), **os.environ}
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        except subprocess.TimeoutExpired:
            pytest.skip("Maven did not answer within 300 seconds")
        if done.returncode:
            pytest.skip(f"Maven: {done.stdout.strip()[:300]}")
        return {file.name: file.read_text() for file in Path(folder).iterdir()}


@contextmanager
def server(engine):
    """Start Solr with the empty core `shop`, or a node of OpenSearch; yield its address, and stop it."""
    jars = class_paths()[engine]
    with tempfile.TemporaryDirectory() as folder:
        home, output = copytree(HERE / engine, Path(folder, "home")), Path(folder, "output.txt")
        java = [*JAVA, "-Xmx1g", f"-Dsolr.log.dir={folder}", "-cp", jars, home / "Serve.java", home]
        with (
            output.open("w") as file,
            subprocess.Popen(java, stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT) as server,
        ):
            try:
                yield _address(server, output)
            finally:
                server.stdin.close()
                try:
                    server.wait(30)
                except subprocess.TimeoutExpired:
                    server.kill()


def _address(server, output):
    """Wait until a server writes its address among its messages."""
    while server.poll() is None:
        if match := re.search(r"^(http://127\.0\.0\.1:\d+\S*)\n", output.read_text(), re.MULTILINE):
            return match[1]
        time.sleep(0.2)
    raise RuntimeError(f"the server did not start: {output.read_text()[-2000:]}")

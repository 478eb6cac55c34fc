"""A small file system of its own, in a mount namespace that ends with the test."""

import os
import subprocess
from pathlib import Path

import pytest


class SmallDisk:
    """A tmpfs. `folder` leads to it for all processes; `remount` changes its options."""

    def __init__(self, mount_point, options):
        own = ["--mount"] if os.geteuid() == 0 else ["--mount", "--map-root-user"]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            self.shell = subprocess.Popen(["unshare", *own, "sh"], text=True, **pipes)
        except FileNotFoundError:
            pytest.skip("there is no unshare here, so no file system of our own")
        self.mount_point = mount_point
        mount_point.mkdir()
        answer = self.do(f"mount -t tmpfs -o mode=777,{options} small {mount_point}")
        if answer != "0":
            self.close()
            pytest.skip(f"no file system of our own may be mounted here: {answer}")
        self.folder = Path(f"/proc/{self.shell.pid}/root{mount_point}")

    def do(self, command):
        """Run a command in the namespace; return "0" or what went wrong."""
        try:
            self.shell.stdin.write(f"{command}; echo $?\n")
            self.shell.stdin.flush()
        except BrokenPipeError:
            return self.shell.stdout.read().strip()
        return self.shell.stdout.readline().strip()

    def remount(self, options):
        assert self.do(f"mount -o remount,{options} {self.mount_point}") == "0"

    def close(self):
        self.shell.stdin.close()
        self.shell.wait()
        self.shell.stdout.close()


@pytest.fixture
def small_disk(tmp_path):
    """Make small file systems: ``small_disk("size=64k")``."""
    disks = []

    def make(options):
        disks.append(SmallDisk(tmp_path / f"disk{len(disks)}", options))
        return disks[-1]

    yield make
    for disk in disks:
        disk.close()

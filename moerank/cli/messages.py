"""What the commands say on standard error, and how they end when something is wrong."""

from __future__ import annotations

import codecs
import io
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from threading import current_thread, main_thread
from time import monotonic
from typing import Any
from unicodedata import category

import typer

from moerank.files import FULL, cannot_write
from moerank.systems import command_line

__all__ = [
    "INTERRUPTED",
    "escape_what_cannot_be_written",
    "interruptible",
    "is_quiet",
    "keep",
    "notice",
    "printable",
    "remark",
    "sentences",
    "speaking",
]

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells have it."""

SAME_WISH = 2.0
"""Seconds in which a second Ctrl-C is taken for the first: what it asked for is under way."""


_SPEECH: dict[str, Any] = {"quiet": False, "log": None}
"""How a command speaks while it runs: whether it is --quiet, and the open file of --log."""


@contextmanager
def speaking(*, quiet: bool, log: Path | None, command: Sequence[str]) -> Iterator[None]:
    """Let a command say only what is wrong, and keep what it says with the time in a file, behind what is there.

    Outside of `sentences`, so that errors are kept, too. A file that cannot be written ends the command.
    """
    try:
        file = nullcontext() if log is None else log.open("a", encoding="utf-8", buffering=1)
    except OSError as error:
        notice(f"error: cannot write --log {log}: {error.strerror}")
        raise typer.Exit(2) from None
    with file as opened:
        _SPEECH.update(quiet=quiet, log=opened)
        try:
            keep(command_line(command))
            yield
        finally:
            _SPEECH.update(quiet=False, log=None)


def keep(text: str) -> None:
    """Add lines with the time to the file of --log, if there is one; a full disk must not end the command for it."""
    if _SPEECH["log"] is not None:
        now = datetime.now().astimezone().isoformat(" ", "seconds")
        with suppress(OSError):
            _SPEECH["log"].writelines(f"{now} {line}\n" for line in printable(text).splitlines())


def is_quiet() -> bool:
    """Whether the command is to say only what is wrong."""
    return bool(_SPEECH["quiet"])


def remark(text: str) -> None:
    """Print a line on standard error that --quiet leaves out."""
    keep(text) if is_quiet() else notice(text)


@contextmanager
def sentences() -> Iterator[None]:
    """Turn what users can mend into one sentence on standard error and exit code 2."""
    try:
        yield
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        if error.errno in FULL:
            reason = str(cannot_write(error.filename or "temporary files", error))
        notice(f"error: {reason}")
        raise typer.Exit(2) from None
    except (ValueError, ImportError) as error:  # what is not there, or cannot run here
        notice(f"error: {error}")
        raise typer.Exit(2) from None


@contextmanager
def interruptible(again: Sequence[str]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a command in order, with a notice that the command `again` continues it.

    Both raise KeyboardInterrupt inside. The exit code is 128 and the number of the signal, as shells have it.
    """
    received: list[int] = []
    last = -SAME_WISH

    def stop(number: int, frame: object) -> None:
        nonlocal last
        if monotonic() - last > SAME_WISH:
            last = monotonic()
            received.append(number)
            raise KeyboardInterrupt

    handled = (signal.SIGINT, signal.SIGTERM) if current_thread() is main_thread() else ()
    before = {number: signal.signal(number, stop) for number in handled}
    try:
        yield
    except BaseException as error:  # a library may make something else of the interrupt
        if not received and not isinstance(error, KeyboardInterrupt):
            raise
        for number in before if received else ():
            before[number] = signal.SIG_IGN  # the process is about to end
        exec("")  # else Python kills itself with the signal at its end, where it came while text was executed
        notice(f"Interrupted. Nothing that was finished is lost; continue with:\n  {command_line(again)}")
        raise typer.Exit(128 + received[-1] if received else INTERRUPTED) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def escape_what_cannot_be_written() -> None:
    r"""Let standard output take signs that its encoding lacks, as JSON and Python write them: α as \u03b1.

    Files and pipes have the encoding of the country on Windows, and an output of an old terminal may have one as well.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        codecs.register_error("moerank.escape", _escaped)
        sys.stdout.reconfigure(errors="moerank.escape")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def notice(text: str) -> None:
    """Print a line on standard error, also with --quiet."""
    keep(text)
    typer.echo(_broken(printable(text)) if sys.stderr.isatty() else printable(text), err=True)


def _broken(text: str) -> str:
    """Break lines between words, as wide as the terminal; those that are indented are commands to copy."""
    width = get_terminal_size().columns
    lines = text.splitlines()
    return "\n".join(
        line if line.startswith("  ") else fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in lines
    )


def printable(text: str) -> str:
    r"""Return a text in which nothing commands a terminal: names may come from files that somebody else wrote.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(repr(sign)[1:-1] if category(sign) == "Cc" and sign not in "\n\t" else sign for sign in text)

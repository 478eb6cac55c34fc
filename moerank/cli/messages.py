"""Messages on standard error, exit codes, and the handling of Ctrl-C."""

from __future__ import annotations

import codecs
import io
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any, TextIO
from unicodedata import category

import typer

from moerank.files import FULL, cannot_write

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells have it."""

TERMINATED = 128 + signal.SIGTERM

GRACE = 0.8
"""Seconds in which the main thread must hear a signal; inside a kernel it hears none."""

REPEATED = 2.0
"""A second Ctrl-C within so many seconds is ignored: `timeout` sends two."""

SHOW_CURSOR = "\x1b[?25h"


class _Speech:
    """State of the running command: whether it is --quiet, and the open file of --log."""

    quiet = False
    log: TextIO | None = None


@contextmanager
def speaking(*, quiet: bool, log: Path | None, command: Sequence[str]) -> Iterator[None]:
    """Apply --quiet and --log: print only errors, and append all messages with their time to a file.

    It must enclose `sentences`, so that the file gets errors, too. A file that cannot be written ends the command.
    """
    try:
        file = nullcontext() if log is None else log.open("a", encoding="utf-8", buffering=1)
    except OSError as error:
        notice(f"error: cannot write --log {log}: {error.strerror}")
        raise typer.Exit(2) from None
    with file as opened:
        _Speech.quiet, _Speech.log = quiet, opened
        try:
            keep(shlex.join(command))
            yield
        finally:
            _Speech.quiet, _Speech.log = False, None


def is_quiet() -> bool:
    """Whether --quiet is given."""
    return _Speech.quiet


def keep(text: str) -> None:
    """Append lines with the time to the file of --log, if there is one; a full disk does not end the command."""
    if _Speech.log is not None:
        now = datetime.now().astimezone().isoformat(" ", "seconds")
        with suppress(OSError):
            _Speech.log.writelines(f"{now} {line}\n" for line in printable(text).splitlines())


def notice(text: str) -> None:
    """Print a line on standard error, also with --quiet."""
    keep(text)
    typer.echo(printable(text), err=True)


def say(text: str) -> None:
    """Print a paragraph on standard output."""
    typer.echo(printable(text))


def remark(text: str) -> None:
    """Print a line on standard error, but not with --quiet."""
    keep(text) if is_quiet() else notice(text)


def printable(text: str) -> str:
    r"""Return text with control characters escaped, because names may come from foreign files.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(repr(sign)[1:-1] if category(sign) == "Cc" and sign not in "\n\t" else sign for sign in text)


@contextmanager
def sentences() -> Iterator[None]:
    """Print errors of users as one line on standard error, and exit with code 2."""
    try:
        yield
    except (OSError, ValueError, ImportError) as error:
        notice(f"error: {_sentence(error)}")
        raise typer.Exit(2) from None


def _sentence(error: Exception) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if error.errno in FULL:
        return str(cannot_write(error.filename or "temporary files", error))
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


@contextmanager
def interruptible(again: Sequence[str]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt, and name the command `again`, which continues the work.

    A main thread inside a kernel hears no signal: then the process ends after `GRACE` seconds, which files and memos
    bear at any moment. The exit code is 128 plus the number of the signal, as in shells.
    """
    received: list[int] = []
    raised = heard = -REPEATED
    left = Event()

    def stop(number: int, frame: object) -> None:
        nonlocal raised, heard
        heard = monotonic()
        if heard - raised > REPEATED:
            raised = heard
            received.append(number)
            raise KeyboardInterrupt

    def say_how_to_continue() -> None:
        notice(f"Interrupted. Nothing that was finished is lost; continue with:\n  {shlex.join(again)}")

    def watch() -> None:
        while number := os.read(reader, 1):
            arrived = monotonic()
            if number[0] in before and not left.wait(GRACE) and heard < arrived - GRACE:
                sys.stderr = sys.__stderr__ or sys.stderr  # not through a progress bar, which also hides the cursor
                if sys.stderr.isatty():
                    sys.stderr.write(f"\n{SHOW_CURSOR}")
                say_how_to_continue()
                end(128 + number[0])
        os.close(reader)

    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    wakeup = signal.set_wakeup_fd(writer)  # the system writes each signal there at once, whatever the main thread does
    Thread(target=watch, daemon=True).start()
    try:
        yield
    except BaseException as error:  # a library may turn the interrupt into another exception
        if not received and not isinstance(error, KeyboardInterrupt):
            raise
        left.set()
        for number in before if received else ():
            before[number] = signal.SIG_IGN  # the process is about to end
        exec("")  # else Python ends itself with the signal if it came during exec
        say_how_to_continue()
        raise typer.Exit(128 + received[-1] if received else INTERRUPTED) from None
    finally:
        left.set()
        signal.set_wakeup_fd(wakeup)
        os.close(writer)  # which ends the thread
        for number, handler in before.items():
            signal.signal(number, handler)


def end(code: int) -> None:
    """End the process at once, because Python waits for threads inside a kernel, which may take minutes."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code)


def escape_what_cannot_be_written() -> None:
    r"""Write characters that the encoding of standard output lacks as JSON and Python do: α as \u03b1."""

    def escaped(error: Any) -> tuple[str, int]:
        return json.dumps(error.object[error.start : error.end])[1:-1], error.end

    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        codecs.register_error("moerank.escape", escaped)
        sys.stdout.reconfigure(errors="moerank.escape")

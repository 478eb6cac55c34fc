"""Messages on standard error, exit codes, and the handling of Ctrl-C."""

from __future__ import annotations

import codecs
import io
import json
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from threading import Thread, current_thread, main_thread
from time import monotonic, sleep
from typing import TextIO
from unicodedata import category

import typer

from moerank.files import FULL, cannot_write

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells have it."""

TERMINATED = 128 + signal.SIGTERM

GRACE = 0.08
"""Seconds after a signal in which the main thread may end the command; inside a kernel it hears no signal."""

REPEATED = 2.0
"""A second Ctrl-C within so many seconds is ignored."""

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


def keep(text: str) -> None:
    """Append lines with the time to the file of --log, if there is one; a full disk does not end the command."""
    if _Speech.log is not None:
        now = datetime.now().astimezone().isoformat(" ", "seconds")
        with suppress(OSError):
            _Speech.log.writelines(f"{now} {line}\n" for line in printable(text).splitlines())


def is_quiet() -> bool:
    """Whether --quiet is given."""
    return _Speech.quiet


def remark(text: str) -> None:
    """Print a line on standard error, but not with --quiet."""
    keep(text) if is_quiet() else notice(text)


@contextmanager
def sentences() -> Iterator[None]:
    """Print errors of users as one line on standard error, and exit with code 2."""
    try:
        yield
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        if error.errno in FULL:
            reason = str(cannot_write(error.filename or "temporary files", error))
        notice(f"error: {reason}")
        raise typer.Exit(2) from None
    except (ValueError, ImportError) as error:
        notice(f"error: {error}")
        raise typer.Exit(2) from None


@contextmanager
def interruptible(again: Sequence[str]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt, and name the command `again`, which continues the work.

    The exit code is 128 plus the number of the signal, as in shells. A main thread inside a kernel, which hears no
    signal, is not waited for, nor are other threads. Journals and files bear that the process is ended anywhere.
    """
    received: list[int] = []
    last = heard = -REPEATED

    def say() -> None:
        notice(f"Interrupted. Nothing that was finished is lost; continue with:\n  {shlex.join(again)}")

    def stop(number: int, frame: object) -> None:
        nonlocal last, heard
        heard = monotonic()
        if monotonic() - last > REPEATED:
            last = monotonic()
            received.append(number)
            raise KeyboardInterrupt

    def watch(signals: socket.socket) -> None:
        with signals:
            while number := signals.recv(1):
                arrived = monotonic()
                sleep(GRACE)
                if number[0] in before and heard < arrived - GRACE:
                    if sys.stderr.isatty():
                        sys.stderr.write(SHOW_CURSOR)  # a progress bar hides it
                    say()
                    end(128 + number[0])

    def ignored(error: sys.UnraisableHookArgs) -> None:
        if error.exc_type is KeyboardInterrupt and received:  # it came inside a callback, which Python lets nothing end
            say()
            end(128 + received[-1])
        unraisable(error)

    in_main = current_thread() is main_thread()
    unraisable, sys.unraisablehook = sys.unraisablehook, ignored
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM) if in_main}
    wakeup = _watched(watch) if in_main else nullcontext()
    try:
        with wakeup:
            yield
    except BaseException as error:  # a library may turn the interrupt into another exception
        if not received and not isinstance(error, KeyboardInterrupt):
            raise
        for number in before if received else ():
            before[number] = signal.SIG_IGN  # the process is about to end
        exec("")  # else Python ends itself with the signal if it came during exec
        say()
        raise typer.Exit(128 + received[-1] if received else INTERRUPTED) from None
    finally:
        sys.unraisablehook = unraisable
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _watched(watch: Callable[[socket.socket], None]) -> Iterator[None]:
    """Let a thread watch a socket that receives the number of each signal at once."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    Thread(target=watch, args=(reader,), daemon=True).start()
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        writer.close()  # which ends the thread


def end(code: int) -> None:
    """End the process at once: Python would wait for threads inside a kernel, and takes a second to clear up."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code)


def escape_what_cannot_be_written() -> None:
    r"""Write characters that the encoding of standard output lacks as JSON and Python do: α as \u03b1."""
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
    """Break lines between words at the width of the terminal, except indented lines, which are commands to copy."""
    width = get_terminal_size().columns
    return "\n".join(
        line if line.startswith("  ") else fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    )


def printable(text: str) -> str:
    r"""Return text with control characters escaped, because names may come from foreign files.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(repr(sign)[1:-1] if category(sign) == "Cc" and sign not in "\n\t" else sign for sign in text)

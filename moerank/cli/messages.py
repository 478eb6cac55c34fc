"""Messages on standard error, exit codes, and the handling of Ctrl-C."""

import io
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Event, Thread
from time import monotonic
from unicodedata import category

import typer
from rich.console import Console
from rich.status import Status

from moerank.files import FULL, cannot_write

# Exit code after Ctrl-C, as in shells.
INTERRUPTED = 128 + signal.SIGINT

TERMINATED = 128 + signal.SIGTERM

# Seconds that the main thread has to react to a signal; it cannot react inside a kernel.
GRACE = 0.8

# A second signal within this many seconds is ignored, because `timeout` sends two.
REPEATED = 2.0

SHOW_CURSOR = "\x1b[?25h"


# Whether the command prints only errors and its last line; a command with --quiet sets it.
is_quiet = ContextVar("is_quiet", default=False)


def notice(text: str) -> None:
    """Print a line on standard error, also with --quiet."""
    typer.echo(
        printable(text), file=sys.stderr
    )  # click would write UTF-8 where the stream is ASCII


def say(text: str) -> None:
    """Print a paragraph on standard output."""
    typer.echo(printable(text), file=sys.stdout)


def remark(text: str) -> None:
    """Print a line on standard error, but not with --quiet."""
    if not is_quiet.get():
        notice(text)


def reading(*names: object) -> Status:
    """Show on a terminal which files are being read, because large files take a while; not with --quiet."""
    console = Console(stderr=True, markup=False, quiet=is_quiet.get())
    return console.status(printable(f"Reading {', '.join(map(str, names))}"))


def printable(text: str) -> str:
    r"""Return text with control characters escaped, because names may come from foreign files.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(
        repr(sign)[1:-1] if category(sign) == "Cc" and sign not in "\n\t" else sign for sign in text
    )


@contextmanager
def sentences() -> Iterator[None]:
    """Print errors that a user can mend as one line on standard error, and exit with code 2."""
    try:
        yield
    except BrokenPipeError:  # such as | head, after which click ends the command silently
        raise
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
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt, and print the command `again`, which continues the work.

    The main thread cannot react inside a kernel. In that case the process ends after `GRACE` seconds; files and memos
    stay valid whenever it ends. The exit code is 128 plus the number of the signal, as in shells.
    """
    received: list[int] = []
    raised = heard = -REPEATED
    exited = Event()

    def stop(number: int, frame: object) -> None:
        nonlocal raised, heard
        heard = monotonic()
        if heard - raised > REPEATED:
            raised = heard
            received.append(number)
            raise KeyboardInterrupt

    def say_how_to_continue() -> None:
        notice(f"Interrupted. All finished work is saved; continue with:\n  {shlex.join(again)}")

    def watch() -> None:
        while number := os.read(reader, 1):
            arrived = monotonic()
            if number[0] in before and not exited.wait(GRACE) and heard < arrived - GRACE:
                sys.stderr = (
                    sys.__stderr__ or sys.stderr
                )  # bypass the progress bar, which also hides the cursor
                if sys.stderr.isatty():
                    sys.stderr.write(f"\n{SHOW_CURSOR}")
                say_how_to_continue()
                end(128 + number[0])
        os.close(reader)

    reader, writer = os.pipe()
    if hasattr(os, "set_blocking"):  # not on Windows before Python 3.12
        os.set_blocking(writer, False)
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    wakeup = signal.set_wakeup_fd(
        writer
    )  # each signal is written there at once, whatever the main thread does
    Thread(target=watch, daemon=True).start()
    try:
        yield
    except BaseException as error:  # a library may turn the interrupt into another exception
        if not received and not isinstance(error, KeyboardInterrupt):
            raise
        exited.set()
        for number in before if received else ():
            before[number] = signal.SIG_IGN  # the process is about to end
        exec("")  # otherwise Python kills itself with the signal if it came during exec
        say_how_to_continue()
        raise typer.Exit(128 + received[-1] if received else INTERRUPTED) from None
    finally:
        exited.set()
        signal.set_wakeup_fd(wakeup)
        os.close(writer)  # this ends the thread
        for number, handler in before.items():
            signal.signal(number, handler)


def end(code: int) -> None:
    """End the process at once. Python would otherwise wait for threads inside a kernel, perhaps for minutes."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code)


def escape_what_cannot_be_written() -> None:
    r"""Write characters that the encoding of a stream lacks in ASCII, such as \u2212 for −."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

"""Messages on standard error, exit codes, and the handling of Ctrl-C."""

import atexit
import io
import os
import select
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from socket import socketpair
from threading import Thread
from time import monotonic
from unicodedata import category

import typer
from rich.console import Console
from rich.status import Status

from moerank.files import FULL, cannot_write

# Exit code after Ctrl-C, as in shells.
EXIT_INTERRUPTED = 128 + signal.SIGINT

# Signals within this number of seconds count as one, because `timeout` sends two.
REPEAT_SECONDS = 0.5

SHOW_CURSOR = b"\n\x1b[?25h"  # a progress bar hides it

# Whether the command prints only errors and its last line; a command with --quiet sets it.
is_quiet = ContextVar("is_quiet", default=False)


def notice(text: str) -> None:
    """Print a line on standard error, also with --quiet."""
    # Without the stream, click would write UTF-8 where the stream is ASCII.
    typer.echo(escape_controls(text), file=sys.stderr)


def say(text: str) -> None:
    """Print a paragraph on standard output."""
    typer.echo(escape_controls(text), file=sys.stdout)


def remark(text: str) -> None:
    """Print a line on standard error, but not with --quiet."""
    if not is_quiet.get():
        notice(text)


def reading(*names: object) -> Status:
    """Show on a terminal which files are being read, because large files take a while; not with --quiet."""
    console = Console(stderr=True, markup=False, quiet=is_quiet.get())
    return console.status(escape_controls(f"Reading {', '.join(map(str, names))}"))


def escape_controls(text: str) -> str:
    r"""Return text with control characters escaped, because names may come from foreign files.

    Examples
    --------
    >>> escape_controls("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(
        repr(sign)[1:-1] if category(sign) == "Cc" and sign not in "\n\t" else sign for sign in text
    )


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Print errors that a user can mend as one line on standard error, and exit with code 2."""
    try:
        yield
    except (OSError, ValueError, ImportError) as error:
        if isinstance(error, BrokenPipeError):
            poll = select.poll()
            poll.register(1, 0)
            if poll.poll(0):  # nobody reads the output, as after | head: click ends silently
                raise
        notice(f"error: {_sentence(error)}")
        raise typer.Exit(2) from None


def _sentence(error: Exception) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if error.errno in FULL:
        return str(cannot_write(error.filename or "temporary files", error))
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def command_line(*options: str) -> list[str]:
    """Return the words of the user's command, with further options."""
    return ["moerank", *sys.argv[1:], *options]


@contextmanager
def interruptible(*options: str) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt, and print the command that continues the work, with `options`.

    A second signal ends the process at once. A thread waits for it, because Python raises no exception while a kernel
    runs. Files and memos are valid whenever the process ends. The exit code is 128 plus the number of the
    signal, as in shells.
    """
    received: list[int] = []

    def stop(number: int, frame: object) -> None:
        if not received:
            received.append(number)
            raise KeyboardInterrupt

    @cache
    def print_once() -> None:
        again = shlex.join(command_line(*options))
        notice(f"Interrupted. All finished work is saved; continue with:\n  {again}")

    def end_at_second_signal() -> None:
        begin = None
        while number := reader.recv(1):
            begin = begin or monotonic()
            if monotonic() - begin > REPEAT_SECONDS:
                if sys.stderr.isatty():
                    os.write(2, SHOW_CURSOR)
                print_once()
                with suppress(OSError, ValueError):
                    sys.stdout.flush()
                os._exit(128 + number[0])
        reader.close()

    reader, writer = socketpair()
    writer.setblocking(False)
    handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.set_wakeup_fd(writer.fileno())  # Python writes the number of each signal there at once
    Thread(target=end_at_second_signal, daemon=True).start()
    try:
        yield
    except BaseException as error:  # a library may turn the interrupt into another exception
        if not received and not isinstance(error, KeyboardInterrupt):
            raise
        print_once()
        for number in handlers:  # once no thread is inside a kernel, the process ends by itself
            atexit.register(signal.signal, number, signal.SIG_IGN)
        raise typer.Exit(128 + received[0] if received else EXIT_INTERRUPTED) from None
    finally:
        if not received:  # otherwise the thread still waits for the second signal
            signal.set_wakeup_fd(-1)
            writer.close()
            for number, handler in handlers.items():
                signal.signal(number, handler)


def escape_unencodable() -> None:
    r"""Write characters that the encoding of a stream lacks in ASCII, such as \u2212 for −."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

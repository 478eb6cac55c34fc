"""What the commands say on standard error, and how they end when something is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

__all__ = ["INTERRUPTED", "notice", "sentences"]

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


@contextmanager
def sentences() -> Iterator[None]:
    """Turn what users can mend into one sentence on standard error and exit code 2."""
    try:
        yield
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        notice(f"error: {reason}")
        raise typer.Exit(2) from None
    except ValueError as error:
        notice(f"error: {error}")
        raise typer.Exit(2) from None


def notice(text: str) -> None:
    """Print a line on standard error."""
    typer.echo(text, err=True)

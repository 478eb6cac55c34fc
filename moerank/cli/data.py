"""moerank data: looking at ranking data before anything is learnt from them, and at what is kept of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from moerank.cli.messages import printable, sentences

__all__ = ["DESCRIBE_EXAMPLES", "cache", "describe"]

DESCRIBE_EXAMPLES = """\
Examples:

moerank data describe MQ2008/Fold1

moerank data describe MQ2008/Fold1/train.txt --json
"""


def describe(
    path: Annotated[Path, typer.Argument(help="A LETOR file, or the folder of a fold.")],
    missing: Annotated[
        float | None, typer.Option(help="What the value NULL stands for; without it NULL is an error.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, nothing else.")] = False,
) -> None:
    """Count documents, queries, labels, pairs, and what deserves a look before anything is learnt."""
    from moerank.cli.reading import shown_reading

    with sentences(), shown_reading():
        from moerank.data import describe as describe_data
        from moerank.data import load_fold, load_letor

        parts = load_fold(path, missing=missing) if path.is_dir() else [load_letor(path, missing=missing)]
        descriptions = [describe_data(part) for part in parts]
        if as_json:
            typer.echo(json.dumps([entry.as_dict() for entry in descriptions], indent=1, ensure_ascii=False))
            return
        from moerank.cli.tables import output
        from moerank.cli.tables.data import description_table

        output().print(description_table(str(path), descriptions))
        typer.echo("No value is NaN or infinite: such files are refused.")


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove everything that is kept.")] = False,
) -> None:
    """Show how much is kept of files that were read, and where; with --clear remove it.

    What is kept makes the next reading of the same file fast, and may be
    removed at any time. MOERANK_CACHE names another folder, or off;
    MOERANK_CACHE_SIZE limits its size, in GiB.
    """
    with sentences():
        from moerank.data.cache import cache_entries, cache_folder, cache_limit, clear_cache

        folder = cache_folder()
        if folder is None:
            typer.echo("Nothing is kept: MOERANK_CACHE=off, or there is no home folder.")
            return
        limit, entries = cache_limit(), cache_entries()
        n_entries, n_bytes = clear_cache() if clear else (len(entries), sum(entry.n_bytes for entry in entries))
        files = f"{n_entries:,} file{'s' * (n_entries != 1)}, {n_bytes / 2**30:.3g} GiB"
        size = f"of at most {limit / 2**30:g} GiB"
        typer.echo(printable(f"removed {files}, from {folder}" if clear else f"{files} {size}, in {folder}"))

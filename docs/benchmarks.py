"""Measure the quick benchmarks and write their page.

    python docs/benchmarks.py [--data DIR] [NAME …]

Runs what stands in `BENCHMARKS` one after another, or only what is named, and writes docs/benchmarks.md with the
machine and the date. What is not measured again stays as it is on the page. All of it takes many minutes.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

from moerank.cli.options import n_processors
from moerank.version import VERSION

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "benchmarks.md"

BENCHMARKS = {
    "fitness": ("How fast individuals are judged", [], True),
    "greedy": ("Greedy RankRLS", [], True),
    "fsm_rank": ("FSMRank", [], True),
    "kernels": ("Kernel maps, and counted pairs", [], True),
    "training": ("Every linear solver", ["--repeats", "1"], True),
    "reading": ("Reading LETOR files", ["--megabytes", "20"], False),
}
"""Title, arguments, and whether it takes the data of LETOR, by the name of the file in tests/benchmarks/."""

BEGIN = """\
# Benchmarks

Nothing here gates a build: `tests/benchmarks/` prints what it measures, beside ordinary tools in the same run, and this
page keeps it. Ratios travel from machine to machine, seconds do not; and where the processor is shared with other work,
even the ratio of a single row that is timed by the clock may be off by two or more. The tables are made again by

```sh
python docs/benchmarks.py --data DIR
```

"""

END = """\
## Fronts

```{include} ../plots/README.md
:start-after: "of these small sets."
:end-before: "A study of a problem whose file"
```

## Published numbers

`python tests/benchmarks/published.py` puts five-fold results of every solver beside the published ones; they are
explained in the [theory](theory/index.md). `python tests/benchmarks/practice.py` measures what trees make of a linear
front, `tests/benchmarks/shards.py` a search on more than one machine.
"""


def main():
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; by default all")
    parser.add_argument("--data", help="folder that holds MQ2008 and OHSUMED")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(f"there is no benchmark {', '.join(unknown)}")
    kept = sections(PAGE.read_text(encoding="utf-8")) if PAGE.is_file() else {}
    for name in arguments.names or BENCHMARKS:
        print(name, file=sys.stderr)
        kept[BENCHMARKS[name][0]] = measured(name, arguments.data)
        write(kept)


def write(kept):
    """Write the page with the sections that there are."""
    titles = [title for title, *_ in BENCHMARKS.values() if title in kept]
    text = BEGIN + "".join(f"## {title}\n\n{kept[title].strip()}\n\n" for title in titles) + END
    PAGE.write_text(text, encoding="utf-8")


def sections(text):
    """Return the sections of a page by their titles."""
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def measured(name, data):
    """Run a benchmark and return its section: what it is, the command, where and when, and what it printed."""
    _, options, needs_data = BENCHMARKS[name]
    script = PROJECT / "tests" / "benchmarks" / f"{name}.py"
    says = script.read_text(encoding="utf-8").partition('"""')[2].partition("\n")[0]
    command = [sys.executable, str(script), *options, *(["--data", data] if needs_data and data else [])]
    environment = os.environ | {"COLUMNS": "250", "PYTHONWARNINGS": "ignore"}
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    typed = " ".join(["python", f"tests/benchmarks/{name}.py", *options, *(["--data DIR"] if needs_data else [])])
    return f"{says}\n\n`{typed}`, {machine()}:\n\n{markdown(output)}"


def markdown(output):
    """Return what a benchmark printed, its tables as those of Markdown, so that they fit every screen."""
    lines = []
    for line in output.splitlines():
        if line.startswith("┃"):
            cells = [cell.strip() for cell in line.strip("┃").split("┃")]
            lines += [f"| {' | '.join(cells)} |", "|---" * len(cells) + "|"]
        elif line.startswith("│"):
            lines.append("| " + " | ".join(cell.strip() for cell in line.strip("│").split("│")) + " |")
        elif not line.startswith(("┡", "├")):  # a title or another sentence, or the upper or lower edge of a table
            lines += ["", "" if line.startswith(("┏", "└")) else line.strip(), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def machine():
    """Say where and when this is measured."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file() and (found := re.search(r"model name\s*: (.*)", cpuinfo.read_text(encoding="utf-8"))):
        model = found[1]
    cores = n_processors()
    return (
        f"moerank {VERSION}, {date.today():%Y-%m}, {cores} core{'s' * (cores > 1)} of {model}, shared with other work"
    )


if __name__ == "__main__":
    main()

"""Measure the quick benchmarks and write their page.

    python docs/benchmarks.py [--data DIR] [NAME …]

Runs the named `BENCHMARKS`, or all of them, one after another, and writes docs/benchmarks.md with the machine and the
date. The other sections of the page stay as they are. All benchmarks take many minutes.
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
    "fitness": ("Time to judge individuals", [], True),
    "greedy": ("Greedy RankRLS", [], True),
    "fsm_rank": ("FSMRank", [], True),
    "kernels": ("Kernel maps, and counted pairs", [], True),
    "training": ("Every linear solver", ["--repeats", "1"], True),
    "reading": ("Reading LETOR files", ["--megabytes", "20"], False),
}
"""Title, arguments, and whether the data of LETOR are needed, by the name of the file in tests/benchmarks/."""

BEGIN = """\
# Benchmarks

The scripts in `tests/benchmarks/` measure moerank and ordinary tools in the same run. This page contains their output.
No build depends on it. Ratios are comparable between machines, seconds are not. If the processor is shared with other
work, even the ratio of a single row that is timed by the wall clock may be wrong by a factor of two or more. This
command makes the tables again:

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

`python tests/benchmarks/published.py` shows the five-fold results of every solver beside the published ones, which the
[theory](theory/index.md) explains. `python tests/benchmarks/practice.py` measures trees on the features of a linear
front. `tests/benchmarks/shards.py` measures a search on more than one machine.
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
    """Write the page with all known sections."""
    titles = [title for title, *_ in BENCHMARKS.values() if title in kept]
    text = BEGIN + "".join(f"## {title}\n\n{kept[title].strip()}\n\n" for title in titles) + END
    PAGE.write_text(text, encoding="utf-8")


def sections(text):
    """Return the sections of a page by their titles."""
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def measured(name, data):
    """Run a benchmark and return its section: description, command, machine, date and output."""
    _, options, needs_data = BENCHMARKS[name]
    script = PROJECT / "tests" / "benchmarks" / f"{name}.py"
    says = script.read_text(encoding="utf-8").partition('"""')[2].partition("\n")[0]
    command = [sys.executable, str(script), *options, *(["--data", data] if needs_data and data else [])]
    environment = os.environ | {"COLUMNS": "250", "PYTHONWARNINGS": "ignore"}
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    typed = " ".join(["python", f"tests/benchmarks/{name}.py", *options, *(["--data DIR"] if needs_data else [])])
    return f"{says}\n\n`{typed}`, {machine()}:\n\n{markdown(output)}"


def markdown(output):
    """Return the output of a benchmark with its tables in Markdown, which fit every screen."""
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
    """Return the version, the date and the machine of the measurement."""
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

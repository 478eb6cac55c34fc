"""Measure the quick benchmarks and write their page.

    python docs/benchmarks.py [--data DIR] [NAME …]

Runs the named `BENCHMARKS`, or all of them, one after another, and writes docs/benchmarks.md with the machine and the
date. The other sections stay as they are. All benchmarks take many minutes.
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

from moerank.cli.options import N_PROCESSORS
from moerank.version import VERSION

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "benchmarks.md"

BENCHMARKS = {
    "fitness": ("One individual of a search", [], True),
    "greedy": ("Ten features by Greedy RankRLS", [], True),
    "reading": ("Reading LETOR files", ["--megabytes", "20"], False),
    "training": ("Training time of every linear solver", [], True),
    "kernels": ("Kernel rankers, and how pairs are held", [], True),
}
"""Title, arguments, and whether the data of LETOR are needed, by the name of the file in tests/benchmarks/."""

BEGIN = """\
# Benchmarks

* **A search judges thousands of feature subsets a second.** To train RankSVM on a subset and to compute its NDCG@10
  takes .07 to .08 ms; `LinearSVC` alone takes 140 to 210 times as long. RankRLS takes .005 ms, and `Ridge` 390 to 470
  times as long ([one individual](#one-individual-of-a-search)).
* **The staircase search finds better fronts than the published searches after 1,000 evaluations** on the six problems
  on which it was developed. After 10,000 we detect few differences
  ([which search](#which-search-finds-the-best-front)).
* **Greedy RankRLS selects ten features in 11 to 13 ms.** Retraining selects the same features in 2.3 to 19 s
  ([ten features](#ten-features-by-greedy-rankrls)).
* **Most linear solvers train in a quarter of a second or less**, and the slowest in 9 s
  ([every solver](#training-time-of-every-linear-solver)).
* **The linear ranker trains 49 to 59 times faster than the exact kernel**, and a map of 500 components 10 to 23 times
  faster. The linear one has the same test NDCG@10 as the exact kernel on MQ2008, and on OHSUMED the highest of all
  ([kernels](#kernel-rankers-and-how-pairs-are-held)).
* **Millions of pairs cost nothing extra.** With 5.4 million pairs in one query, RankSVM trains in 7 to 8 ms
  ([how pairs are held](#kernel-rankers-and-how-pairs-are-held)).

Ratios are comparable between machines, seconds are not. The data are the first folds of MQ2008 (9,630 training
documents, 46 features) and OHSUMED (9,219 documents, 45 features), unless a section says otherwise. Everything runs on
one thread, after its code has been compiled. This command prints the tables:

```sh
python docs/benchmarks.py --data DIR
```

"""

SEARCHES = """\
## Which search finds the best front

```{include} ../plots/README.md
:start-after: "Which search finds the best front?"
:end-before: "Several changes did not help"
```

Other pages contain further measurements: [the usual tools on the same data](guide/expectations.md),
[large data](guide/large_data.md), and the [published results](theory/published.md) and ours.
"""


def main():
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; by default all"
    )
    parser.add_argument("--data", help="folder that holds MQ2008 and OHSUMED")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(f"there is no benchmark {', '.join(unknown)}")
    texts = sections(PAGE.read_text(encoding="utf-8"))
    for name in arguments.names or BENCHMARKS:
        print(name, file=sys.stderr)
        texts[BENCHMARKS[name][0]] = measured(name, arguments.data)
        write(texts)


def write(texts):
    """Write the page with all known sections."""
    titles = [title for title, *_ in BENCHMARKS.values() if title in texts]
    text = (
        BEGIN + "".join(f"## {title}\n\n{texts[title].strip()}\n\n" for title in titles) + SEARCHES
    )
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
    command = [
        sys.executable,
        str(script),
        *options,
        *(["--data", data] if needs_data and data else []),
    ]
    environment = os.environ | {"COLUMNS": "250", "PYTHONWARNINGS": "ignore"}
    output = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout
    typed = " ".join(
        ["python", f"tests/benchmarks/{name}.py", *options, *(["--data DIR"] if needs_data else [])]
    )
    return f"{says}\n\n`{typed}`, {machine()}:\n\n{markdown(output)}"


def markdown(output):
    """Return the output of a benchmark with its tables in Markdown, which fit every screen."""
    lines = []
    for line in output.splitlines():
        if line.startswith("┃"):
            cells = [cell.strip() for cell in line.strip("┃").split("┃")]
            lines += [f"| {' | '.join(cells)} |", "|---" * len(cells) + "|"]
        elif line.startswith("│"):
            lines.append(
                "| " + " | ".join(cell.strip() for cell in line.strip("│").split("│")) + " |"
            )
        elif not line.startswith(
            ("┡", "├")
        ):  # a title or another sentence, or the upper or lower edge of a table
            lines += ["", "" if line.startswith(("┏", "└")) else line.strip(), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def machine():
    """Return the version, the date and the machine of the measurement."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file() and (
        match := re.search(r"model name\s*: (.*)", cpuinfo.read_text(encoding="utf-8"))
    ):
        model = match[1]
    cores = f"{N_PROCESSORS} core{'s' * (N_PROCESSORS > 1)}"
    return f"moerank {VERSION}, {date.today():%Y-%m}, {cores} of {model}"


if __name__ == "__main__":
    main()

"""Record what `moerank run digits` prints as a picture, docs/_static/run-digits.svg.

python docs/making/recording.py
"""

import os
import re
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COMMAND = "moerank run digits"
WIDTH = 88
ROWS = 5
PICTURE = Path(__file__).resolve().parents[1] / "_static" / "run-digits.svg"


def shortened(lines):
    """Return the verdict, two lines of chosen features, and the table with its last rows."""
    texts = [line.plain for line in lines]
    features = next(place for place, text in enumerate(texts) if text.startswith("Chosen "))
    table = next(place for place, text in enumerate(texts) if "NDCG@10  NDCG@10" in text)
    chosen = next(place for place, text in enumerate(texts) if " chosen " in text)
    kept = Text(texts[features][: 2 * WIDTH - 4].rpartition(",")[0] + ", …")
    return [*lines[:features], kept, *lines[table : table + 3], Text("…"), *lines[chosen - ROWS + 1 :]]


def main():
    """Run the command in an empty folder, and draw what it prints, without most of the table."""
    terminal = {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", *COMMAND.split()]
        ran = subprocess.run(
            command, cwd=folder, env=os.environ | terminal, stdout=subprocess.PIPE, text=True, check=True
        )
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(f"[bold]$ {COMMAND}[/bold]")
    for line in shortened([Text.from_ansi(line) for line in ran.stdout.splitlines()]):
        console.print(line)
    svg = console.export_svg(title=COMMAND, theme=MONOKAI, unique_id="run")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # rich names fonts of a server
    PICTURE.write_text(svg.replace("Fira Code, monospace", "monospace"), encoding="utf-8")


if __name__ == "__main__":
    main()

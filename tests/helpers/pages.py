"""The code blocks of a page of Markdown, in their order, and what is said of them."""

import doctest
import io
import linecache
import re
from contextlib import redirect_stdout
from dataclasses import dataclass

BLOCK = re.compile(r"^(?:<!-- (?P<said>[^>]*) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block, the number of its first line, and the comment in front of it."""

    kind: str
    text: str
    line: int
    said: str

    @property
    def runs(self):
        return self.kind in ("python", "sh", "yaml") and not self.said.startswith("not run: ")

    @property
    def compared(self):
        return self.kind == "text" and self.said == "compared"

    @property
    def file(self):
        """The file that a block of TOML stands for, if it does."""
        name = re.match(r"# ([\w.-]+\.toml)\n", self.text)
        return name[1] if name and self.kind == "toml" and not self.said.startswith("not run: ") else None


def blocks(page):
    """Return the blocks of the text of a page."""
    return [
        Block(match["kind"], match["text"], page[: match.start("text")].count("\n") + 1, match["said"] or "")
        for match in BLOCK.finditer(page)
    ]


def follow(page, text, folder, run):
    """Do what a page says, block by block; `run` runs a block of commands, and returns what the last one prints."""
    names, printed, flags = {"__name__": "page"}, "", doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for block in blocks(text):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.compared:
            right = doctest.OutputChecker().check_output(block.text, printed, flags)
            assert right, f"{page}, line {block.line}: what is printed is\n{printed}"
        elif block.runs and block.kind == "python":
            code = "\n" * block.line + block.text
            linecache.cache[page] = len(code), None, code.splitlines(keepends=True), page  # as notebooks do
            with redirect_stdout(io.StringIO()) as output:
                exec(compile(code, page, "exec"), names)
            printed = output.getvalue()
        elif block.runs:
            printed = run(block)

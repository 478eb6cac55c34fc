"""The code blocks of a page of Markdown, in their order, and what is said of them."""

import re
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

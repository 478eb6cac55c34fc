"""Check a built site: no link is dead, no page loads anything from the network, and no option begins with a dash –.

    python docs/making/links.py FOLDER

Prints what is wrong and ends with 1, or says how much was looked at.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src"}


class Page(HTMLParser):
    """The places of a page, what it links to and loads, and the options that lost their hyphens."""

    def __init__(self, text):
        super().__init__()
        self.places, self.links, self.loaded, self.dashes = set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        """Collect the attributes that count."""
        found = dict(attributes)
        self.places |= {found.get("id"), found.get("name")}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if found.get(LOADED.get(tag, "")):
            self.loaded.append(found[LOADED[tag]])

    def handle_data(self, data):
        """Collect what was an option before a dash replaced its hyphens."""
        self.dashes += re.findall(r"(?<!\S)–[a-z]\S*", data)


def mistakes(folder):
    """Yield a sentence for each dead link, each thing from the network and each option with a dash."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.html"))
        if "_static" not in path.parts
    }
    for path, page in pages.items():
        shown = path.relative_to(folder)
        yield from (f"{shown} loads {url}" for url in page.loaded if urlsplit(url).netloc)
        yield from (f"{shown}: {option} was an option" for option in page.dashes)
        for url in [*page.links, *page.loaded]:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{shown}: {url} is not there"
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].places
            ):
                yield f"{shown}: {url} is no place of that page"
    if not pages:
        yield f"{folder} holds no page"


if __name__ == "__main__":
    found = list(mistakes(Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "every link leads somewhere, and nothing comes from the network")
    sys.exit(bool(found))

"""Write the pages of the reference that are made from the code."""

from making import commands, keys, names, table


def write_reference(folder):
    """Write all pages below `folder`, those that changed alone, and remove what is no page any more."""
    pages = {}
    for module in (names, commands, keys, table):
        pages |= module.pages()
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder).as_posix() not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

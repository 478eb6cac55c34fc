"""The files of a study, to compare two folders."""

import json


def contents(folder):
    """All files but the log of starts, results without times."""
    files = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and name != "starts.log":
            text = path.read_text()
            if name.startswith("cells"):
                values = json.loads(text)
                del values["times"]
                text = json.dumps(values)
            files[name] = text
    return files

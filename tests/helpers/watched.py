"""What Python opens, imports and runs while a block is executed, by its audit events."""

import sys
from contextlib import contextmanager

EVENTS = ("open", "import", "exec", "compile", "pickle.find_class", "os.system", "subprocess.Popen", "socket.connect")

_watchers = []


def _hook(event, arguments):
    if _watchers and event in EVENTS:
        for seen in _watchers:
            seen.append((event, arguments[0]))


@contextmanager
def watched():
    """Yield the list that (event, first argument) are added to."""
    if not hasattr(sys, "_moerank_watched"):  # a hook can never be taken away: one serves all
        sys.addaudithook(_hook)
        sys._moerank_watched = True
    seen = []
    _watchers.append(seen)
    try:
        yield seen
    finally:
        _watchers.remove(seen)

"""The structure of the package, as far as import-linter does not check it."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import moerank

PROJECT = Path(__file__).resolve().parents[1]
FILES = sorted((PROJECT / "moerank").rglob("*.py"))
trees = cache(lambda: {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES})
LAYERS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0]

MOST_FILES, MOST_LINES_OF_CODE = 155, 21_000

VAGUE = {"found", "place", "known", "kept", "beside", "whole", "told", "lots"}
"""Names that do not say what is held."""


def module_of(path):
    """The dotted name of a file's module."""
    parts = path.relative_to(PROJECT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def decorators(function):
    return {ast.unparse(decorator).partition("(")[0].rpartition(".")[2] for decorator in function.decorator_list}


def code_lines(function):
    """The number of lines of a function behind its signature and docstring."""
    before = function.body[0].end_lineno if ast.get_docstring(function) else function.body[0].lineno - 1
    return function.end_lineno - before


def imported(path, tree):
    """The modules of the package that a file imports, or names for a later import."""
    found = set()
    package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            source = ".".join(filter(None, (base, node.module)))
            found |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.partition(":")[0]
            found |= {name, f"moerank.{name}"}
    return found & MODULES.keys() - {module_of(path)}


def named_by_a_row():
    """The modules of which a table has a row, or a room offers a name: one file per format, search, figure, method.

    A row is "module:name", the module whole or as the table's room calls it, or an imported name in a mapping.
    """
    rows = set()
    for path, tree in trees().items():
        constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        texts = [text for text in constants if isinstance(text, str) and re.fullmatch(r"[\w.]+:\w+", text)]
        named = {text.partition(":")[0] for text in texts}
        rows |= {room + name for name in named for room in ("", "moerank.", "moerank.figures.")}
        tables = [node.value for node in tree.body if isinstance(getattr(node, "value", None), ast.Dict)]
        held = {node.id for table in tables for node in ast.walk(table) if isinstance(node, ast.Name)}
        for node in (node for node in tree.body if isinstance(node, ast.ImportFrom)):
            if path.name == "__init__.py" or held & {alias.name for alias in node.names}:
                rows.add(node.module)
    return rows & MODULES.keys()


def aliases(tree):
    """The names of the type aliases that a file defines: TypeAlias, NDArray[…], Callable[…]."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).endswith("TypeAlias"):
            yield node.target.id
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
            kind = ast.unparse(node.value.value).rpartition(".")[2]
            yield from (target.id for target in node.targets if kind in ("NDArray", "Callable"))


def lines_of_code(path, tree):
    """The lines of a file with code: not those that are blank, comments or docstrings."""
    documented, of_texts = set(), set()
    for node in ast.walk(tree):
        described = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if described and ast.get_docstring(node, clean=False) is not None:
            documented |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno > node.lineno:
            of_texts |= set(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    written = {number for number, line in lines if line.strip() and not line.lstrip().startswith("#")}
    return (written | of_texts) - documented


def public_names(tree):
    """The classes and functions of a file, and its constants, that have no underscore in front."""
    names, constants = [], []
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(node.name)
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            held = target.elts if isinstance(target, ast.Tuple) else [target]
            constants += [name.id for name in held if isinstance(name, ast.Name) and name.id.isupper()]
    return ([name for name in group if not name.startswith("_")] for group in (names, constants))


def given_names(tree):
    """Yield the names of variables, arguments, attributes and keywords that a file assigns or passes, with lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg | ast.keyword) and node.arg is not None:
            yield node.arg, node.lineno


def doubles(names):
    """The names that stand in several files, with these."""
    files = {}
    for path, name in names:
        files.setdefault(name, []).append(str(path.relative_to(PROJECT)))
    return {name: paths for name, paths in files.items() if len(paths) > 1}


def test_the_package_keeps_its_weight():
    assert len(FILES) <= MOST_FILES
    assert sum(len(lines_of_code(path, tree)) for path, tree in trees().items()) <= MOST_LINES_OF_CODE


def test_a_name_of_a_file_stands_once():
    assert doubles((path, path.stem) for path in FILES if path.stem != "__init__") == {}


@pytest.mark.parametrize("kind", [0, 1], ids=["classes and functions", "constants"])
def test_a_public_name_stands_once(kind):
    assert doubles((path, name) for path, tree in trees().items() for name in set([*public_names(tree)][kind])) == {}


def test_names_say_what_is_held():
    vague = [(str(p), line, name) for p, tree in trees().items() for name, line in given_names(tree) if name in VAGUE]
    assert vague == []


def test_every_file_says_in_its_first_line_what_it_is_for():
    for path in [*FILES, *(PROJECT / "plots").glob("*.py"), *(PROJECT / "tests" / "helpers").glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(text)), path
        assert text.startswith(('"""', 'r"""')), path
        assert len(text.splitlines()[0]) > 25, path


def test_no_file_is_over_800_lines():
    long = {
        str(path.relative_to(PROJECT)): n
        for folder in ("moerank", "tests", "plots", "docs")
        for path in (PROJECT / folder).rglob("*.py")
        if (n := len(path.read_text(encoding="utf-8").splitlines())) > 800
    }
    assert long == {}


def test_no_function_has_over_60_lines_of_code():
    long = {
        f"{module_of(path)}.{node.name}": code_lines(node)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "kernel" not in decorators(node)
        if code_lines(node) > 60
    }
    assert long == {}


def test_no_small_module_has_a_single_importer():
    importers = Counter(name for path, tree in trees().items() for name in imported(path, tree))
    rows = named_by_a_row()
    small = {
        name: importers[name]
        for name, path in MODULES.items()
        if len(path.read_text(encoding="utf-8").splitlines()) < 60
        and importers[name] <= 1
        and path.stem not in ("__init__", "__main__", "version")
        and name not in rows
    }
    assert small == {}


def test_every_type_alias_is_defined_once():
    assert doubles((path, name) for path, tree in trees().items() for name in aliases(tree)) == {}


def test_every_room_has_a_layer():
    rooms = {
        path.stem
        for path in (PROJECT / "moerank").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert rooms - {"__init__"} == {part.strip() for layer in LAYERS["layers"] for part in layer.split("|")}


def test_every_public_name_is_loaded_when_it_is_used():
    assert len(moerank.__all__) == len(set(moerank.__all__)) > 40
    assert set(dir(moerank)) >= set(moerank.__all__) - {"__version__"}
    for name in moerank.__all__:
        assert getattr(moerank, name) is not None
    for name in ("RankSVM", "GAS", "NDCG", "RankingData", "MOFSRank", "Study"):
        assert getattr(moerank, name).__module__.startswith("moerank.")
    with pytest.raises(AttributeError, match="RankSVN"):
        moerank.RankSVN  # noqa: B018


IN_CHILDREN = """
import gc, os, sys
gc.disable()
exec(sys.argv[1])
gc.freeze()
for code in sys.argv[2:]:
    if os.fork() == 0:
        exec(code, {})
        sys.exit()
    os.wait()
"""


def printed_by(modules, *codes):
    """Return the lines that codes print, each in a process of its own that need not load these modules."""
    command = [sys.executable, "-c", IN_CHILDREN, f"import {modules}", *codes]
    process = subprocess.run(command, capture_output=True, text=True)
    assert not process.stderr, process.stderr
    return process.stdout.splitlines()


def test_importing_the_package_loads_nothing_that_takes_time():
    code = "import sys, moerank; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "sklearn", "pandas", "numba", "pymoo", "matplotlib", "pydantic"} & set(loaded)


def test_public_names_load_nothing_that_only_some_calls_need():
    rare = {"scipy.stats", "scipy.optimize", "sklearn.metrics", "sklearn.feature_selection", "lightgbm", "matplotlib"}
    tell = "import sys, moerank; moerank.{}; print(*sys.modules)"
    names = ("MOFSRank, moerank.GAS, moerank.load_letor", "load_problem")
    estimators, problem = (set(line.split()) for line in printed_by("numba", *map(tell.format, names)))
    assert (rare | {"pandas", "pyarrow"}) & estimators == set()
    assert rare & problem == set()


# What users and scikit-learn do with scipy.stats and pandas, before, after and while moerank loads scikit-learn.
OF_STATISTICS = """
import gc, sys, threading, types
sys.setswitchinterval(1e-5)
def use():
    import pandas, scipy.stats as by_name
    from scipy import stats
    assert pandas is sys.modules["pandas"] and pandas.Series([1]).sum() == 1
    from scipy.stats import norm
    from sklearn.preprocessing import QuantileTransformer
    assert by_name is stats is sys.modules["scipy.stats"] and norm is stats.norm and norm.cdf(0) == 0.5
    seen.append(QuantileTransformer(n_quantiles=2, output_distribution="normal").fit([[0.0], [1.0]]))
def look():
    while "sklearn.utils.fixes" not in sys.modules: pass
    use()
seen, thread = [], threading.Thread(target=look)
{before}
import moerank.scikit_learn
{after}
import sklearn.utils.fixes
from sklearn.model_selection import RandomizedSearchCV
use()
assert sklearn.utils.fixes._mode([1, 1, 2]).mode == 1
assert sklearn.utils.fixes.pd.DataFrame is sys.modules["pandas"].DataFrame
gc.collect()
modules = [entry for entry in gc.get_objects() if isinstance(entry, types.ModuleType)]
assert sum(module.__name__ == "scipy.stats" for module in modules) == 1
print(len(seen))
"""
TAKES_A_NAME = """
import pathlib, importlib.machinery as machinery
class Loader(machinery.SourceFileLoader):
    def get_code(self, name):
        taken = b"\\nfrom scipy.stats import norm\\nhalf = scipy.stats.norm.cdf(0)"
        return compile(self.get_data(self.path) + taken, self.path, "exec")
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "sklearn.utils.fixes":
            return machinery.ModuleSpec(name, Loader(name, path[0] + "/fixes.py"), origin=path[0])
sys.meta_path.insert(0, Finder)
"""


BEFORE_AND_AFTER = [
    ("", "assert not {'scipy.stats', 'pandas'} & set(sys.modules) and 'stats' not in vars(sys.modules['scipy'])"),
    ("import scipy.stats", ""),
    ("import pandas", "assert 'scipy.stats' not in sys.modules"),
    ("import sklearn.base", ""),
    (TAKES_A_NAME, "import sklearn.utils.fixes\nassert sklearn.utils.fixes.half == 0.5"),
    ("thread.start()", "thread.join()"),
]


def test_nobody_sees_that_scikit_learn_was_loaded_without_statistics_and_pandas():
    codes = [OF_STATISTICS.format(before=before, after=after) for before, after in BEFORE_AND_AFTER]
    needed = "joblib, numpy.random, scipy.integrate, scipy.interpolate, scipy.ndimage, scipy.spatial"
    assert printed_by(needed, *codes) == [*"11111", "2"]  # uses


def test_rooms_are_mirrored_by_tests():
    tested = {path.name for path in (PROJECT / "tests").iterdir() if path.is_dir()}
    rooms = {path.name for path in (PROJECT / "moerank").iterdir() if (path / "__init__.py").is_file()}
    assert rooms <= tested


def test_the_checks_notice_what_they_forbid():
    tree = ast.parse("A: TypeAlias = int\nB = NDArray[float]\nC = Callable[[], int]\nd = names[0]\n")
    assert list(aliases(tree)) == ["A", "B", "C"]
    function = ast.parse('@kernel(cache=True)\ndef f():\n    """A\n    b."""\n    return 1\n').body[0]
    assert (decorators(function), code_lines(function)) == ({"kernel"}, 1)
    here = PROJECT / "moerank" / "exports" / "formats.py"
    names = imported(here, ast.parse("from moerank.files import x\nfrom . import solr\nw = 'exports.vespa:vespa'\n"))
    assert names == {"moerank.files", "moerank.exports", "moerank.exports.solr", "moerank.exports.vespa"}

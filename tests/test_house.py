"""What a reader of the package has to hold in mind, and the structure as far as import-linter does not check it."""

import ast
import io
import subprocess
import sys
import tokenize
import tomllib
from functools import cache
from pathlib import Path

import pytest

import moerank

PROJECT = Path(__file__).resolve().parents[1]
FILES = sorted((PROJECT / "moerank").rglob("*.py"))
LAYERS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0]

MAX_FILES = 160
MAX_TOKENS = 246_600
MAX_TOKENS_OF_A_FUNCTION = 400

VAGUE = """
about alike apart asked beside chosen drawn each every first found further given here held judged kept known last left
listed lots made mine named odd open_ones others ours own place plain read right said several shown single some stored
taken theirs there told used whole written wrong
"""
"""Determiners, participles and adverbs: a name is a noun for what is held, or a verb for what is done."""

VAGUE_PREFIXES = "among at_ between beyond by_ few from_ in_ least MOST_ most of_ on_ over_ within_ without_"
"""Prepositions, and words of degree in the place of min and max."""

DOCUMENTED = {
    "costs": {"own"},
    "preparation": {"single"},
    "ranking_data": {"first"},
    "formats": {"chosen_"},
    "ensemble": {"by_group"},
    "estimator": {"chosen_"},
    "limits": {"by_group"},
    "objectives": {"chosen", "shown"},
    "settings": {"by_group"},
    "boosting": {"right_", "wrong_"},
    "model": {"left", "right"},
    "result": {"further", "least", "chosen"},
    "best_subset": {"by_group"},
    "searches": {"most"},
}
"""Parameters, attributes and fields of files that have such a name, by module: users know them by it."""

COMPREHENSIONS = ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
NO_TOKENS = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


@cache
def text_of(path):
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path):
    """The syntax tree of a file; each node knows its parent."""
    tree = ast.parse(text_of(path))
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.parent = node
    return tree


def trees():
    return {path: tree_of(path) for path in FILES}


def all_nodes(files, *kinds):
    """Yield the nodes of these kinds, with their files."""
    for path in files:
        yield from ((path, node) for node in ast.walk(tree_of(path)) if isinstance(node, kinds))


def module_of(path):
    """The dotted name of a file's module."""
    parts = path.relative_to(PROJECT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def decorators(function):
    return {ast.unparse(decorator).partition("(")[0].rpartition(".")[2] for decorator in function.decorator_list}


def code_lines(function):
    """The number of lines of a function behind its signature and docstring."""
    before = function.body[0].end_lineno if ast.get_docstring(function) else function.body[0].lineno - 1
    return function.end_lineno - before


def docstring_lines(tree):
    """The lines of the docstrings of a file."""
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | FUNCTIONS) and ast.get_docstring(node, clean=False) is not None:
            lines |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


@cache
def tokens_of(path):
    """The line of each token of a file, without comments, docstrings and line breaks.

    A formatted text is one token, as for Python 3.11; later versions divide it.
    """
    documented = docstring_lines(tree_of(path))
    lines, depth = [], 0
    for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_END":
            depth -= 1
        elif depth == 0 and token.type not in NO_TOKENS and token.start[0] not in documented:
            lines.append(token.start[0])
        if kind == "FSTRING_START":
            depth += 1
    return lines


def tokens_of_function(path, function):
    """The number of tokens of a function, with its signature."""
    return sum(function.lineno <= line <= function.end_lineno for line in tokens_of(path))


def public_names(tree):
    """The classes and functions of a file, and its constants, that have no underscore in front."""
    names, constants = [], []
    for node in tree.body:
        if isinstance(node, ast.ClassDef | FUNCTIONS):
            names.append(node.name)
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            held = target.elts if isinstance(target, ast.Tuple) else [target]
            constants += [name.id for name in held if isinstance(name, ast.Name) and name.id.isupper()]
    return ([name for name in group if not name.startswith("_")] for group in (names, constants))


def aliases(tree):
    """The names of the type aliases that a file defines: TypeAlias, NDArray[…], Callable[…]."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).endswith("TypeAlias"):
            yield node.target.id
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
            kind = ast.unparse(node.value.value).rpartition(".")[2]
            yield from (target.id for target in node.targets if kind in ("NDArray", "Callable"))


def doubles(names):
    """The names that stand in several files, with these."""
    files = {}
    for path, name in names:
        files.setdefault(name, []).append(str(path.relative_to(PROJECT)))
    return {name: paths for name, paths in files.items() if len(paths) > 1}


def contains(node, kinds):
    """Whether a node has a node of these kinds below it."""
    return any(isinstance(inner, kinds) for inner in ast.walk(node) if inner is not node)


def is_text(node):
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_number(node):
    """Whether an expression that multiplies a text is a number rather than a condition, as far as the syntax says."""
    return isinstance(node, ast.Constant | ast.BinOp) or ast.unparse(node).startswith("len(")


def names_a_dict(function):
    """The names that a function gives to literal dicts only in order to splat them."""
    literal = {
        node.targets[0].id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and is_literal_dict(node.value)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in literal and isinstance(node.ctx, ast.Load):
            parent = node.parent
            if not (isinstance(parent, ast.keyword) and parent.arg is None):
                literal.discard(node.id)
    return literal


def is_literal_dict(node):
    return isinstance(node, ast.Dict) or (isinstance(node, ast.Call) and ast.unparse(node.func) == "dict")


def functions_of_many_tokens(files):
    for path, function in all_nodes(files, FUNCTIONS):
        weight = tokens_of_function(path, function)
        if weight > MAX_TOKENS_OF_A_FUNCTION and not {"kernel", "intrinsic"} & decorators(function):
            yield path, function.lineno, f"{function.name} ({weight})"


def functions_of_many_lines(files):
    for path, function in all_nodes(files, FUNCTIONS):
        if code_lines(function) > 60 and not {"kernel", "intrinsic"} & decorators(function):
            yield path, function.lineno, f"{function.name} ({code_lines(function)})"


def files_of_many_lines(files):
    for path in files:
        n_lines = len(text_of(path).splitlines())
        if n_lines > 800:
            yield path, n_lines, path.stem


def long_lines(files):
    for path in files:
        with_code = set(tokens_of(path))
        for number, line in enumerate(text_of(path).splitlines(), start=1):
            if len(line.partition("  #")[0]) > 100 and number in with_code:
                yield path, number, line.strip()


def comprehensions_in_comprehensions(files):
    for path, node in all_nodes(files, COMPREHENSIONS):
        if contains(node, COMPREHENSIONS):
            yield path, node.lineno, ast.unparse(node)


def texts_times_conditions(files):
    for path, node in all_nodes(files, ast.BinOp):
        if isinstance(node.op, ast.Mult):
            for text, factor in ((node.left, node.right), (node.right, node.left)):
                if is_text(text) and not is_number(factor):
                    yield path, node.lineno, ast.unparse(node)


def chains_of_conditional_expressions(files):
    for path, node in all_nodes(files, ast.IfExp):
        if contains(node, ast.IfExp):
            yield path, node.lineno, ast.unparse(node)


def splats_of_literal_dicts(files):
    for path, node in all_nodes(files, ast.keyword):
        if node.arg is None and is_literal_dict(node.value):
            yield path, node.value.lineno, ast.unparse(node.value)
    for path, function in all_nodes(files, FUNCTIONS):
        yield from ((path, function.lineno, name) for name in names_a_dict(function))


def assignments_in_expressions(files):
    for path, node in all_nodes(files, ast.NamedExpr):
        child, parent = node, node.parent
        while not isinstance(parent, ast.stmt | COMPREHENSIONS | ast.IfExp | ast.Lambda):
            child, parent = parent, parent.parent
        if not (isinstance(parent, ast.If | ast.While) and child is parent.test):
            yield path, node.lineno, ast.unparse(node)


def assigned_names(files):
    """Yield the names of variables, parameters and attributes that a file assigns."""
    for path, node in all_nodes(files, ast.Name, ast.Attribute, ast.arg):
        if isinstance(node, ast.arg):
            yield path, node.lineno, node.arg
        elif isinstance(node.ctx, ast.Store):
            yield path, node.lineno, node.id if isinstance(node, ast.Name) else node.attr


def vague_names(files):
    names, prefixes = set(VAGUE.split()), tuple(VAGUE_PREFIXES.split())
    for path, line, name in assigned_names(files):
        vague = name.strip("_") in names or name.lstrip("_").startswith(prefixes)
        if vague and name not in DOCUMENTED.get(path.stem, ()):
            yield path, line, name


RULES = [
    functions_of_many_tokens,
    functions_of_many_lines,
    files_of_many_lines,
    long_lines,
    comprehensions_in_comprehensions,
    texts_times_conditions,
    chains_of_conditional_expressions,
    splats_of_literal_dicts,
    assignments_in_expressions,
    vague_names,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_reader_parses_one_thing_at_a_time(rule):
    places = [f"{path.relative_to(PROJECT)}:{line}: {text}" for path, line, text in rule(FILES)]
    assert places == []


def test_the_package_keeps_its_weight():
    assert len(FILES) <= MAX_FILES
    assert sum(len(tokens_of(path)) for path in FILES) <= MAX_TOKENS


def test_a_name_of_a_file_stands_once():
    assert doubles((path, path.stem) for path in FILES if path.stem != "__init__") == {}


@pytest.mark.parametrize("kind", [0, 1], ids=["classes and functions", "constants"])
def test_a_public_name_stands_once(kind):
    assert doubles((path, name) for path, tree in trees().items() for name in set([*public_names(tree)][kind])) == {}


def test_every_file_says_in_its_first_line_what_it_is_for():
    for path in [*FILES, *(PROJECT / "plots").glob("*.py"), *(PROJECT / "tests" / "helpers").glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(text)), path
        assert text.startswith(('"""', 'r"""')), path
        assert len(text.splitlines()[0]) > 25, path


def test_no_further_file_is_over_800_lines():
    files = [path for folder in ("tests", "plots", "docs") for path in (PROJECT / folder).rglob("*.py")]
    assert list(files_of_many_lines(files)) == []


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


BREAKS_EACH_RULE = """
def first(of_rows, others=()):
    tall = "a text that goes on" if of_rows else ("and on, until the line is longer than" if others else "it may be")
    settings = {"seed": 1}
    return first(**settings, **{"of_rows": [[row for row in rows] for rows in of_rows]}), [x := 1], " tall" * bool(tall)
"""


BROKEN_LINES = {
    "functions_of_many_tokens": [2],
    "functions_of_many_lines": [2],
    "files_of_many_lines": [805],
    "long_lines": [3, 5],
    "comprehensions_in_comprehensions": [5],
    "texts_times_conditions": [5],
    "chains_of_conditional_expressions": [3],
    "splats_of_literal_dicts": [5, 2],
    "assignments_in_expressions": [5],
    "vague_names": [2, 2],
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rules_notice_what_they_forbid(rule, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(BREAKS_EACH_RULE + "    return 0\n" * 800, encoding="utf-8")
    assert [line for _, line, _ in rule([path])] == BROKEN_LINES[rule.__name__]


def test_the_checks_notice_what_they_forbid():
    tree = ast.parse("A: TypeAlias = int\nB = NDArray[float]\nC = Callable[[], int]\nd = names[0]\n")
    assert list(aliases(tree)) == ["A", "B", "C"]
    function = ast.parse('@kernel(cache=True)\ndef f():\n    """A\n    b."""\n    return 1\n').body[0]
    assert (decorators(function), code_lines(function)) == ({"kernel"}, 1)

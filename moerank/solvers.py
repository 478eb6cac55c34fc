"""The table of solvers: every ranker and every feature selection has a name, and all are made in the same way.

The table is data. Classes are imported when a solver is made.
"""

import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import entry_points
from inspect import signature
from pkgutil import resolve_name
from typing import Any, Literal

from moerank.checks import Parameters, unknown

Family = Literal["evolutionary", "wrapper", "filter", "embedded", "ranker"]

FAMILIES: dict[Family, str] = {
    "evolutionary": "Evolutionary search",
    "wrapper": "Wrapper",
    "filter": "Filter",
    "embedded": "Embedded",
    "ranker": "Ranker without selection",
}
"""The families of solvers in the order of tables and figures, with their titles."""


@dataclass(frozen=True)
class SolverEntry:
    """A row of the table."""

    name: str  # on the command line and in `make_solver`
    family: Family
    paper: str  # authors and venue of the publication
    year: int
    source: Any  # the class as "module:Class", without "moerank." in front, or the class itself
    linear: bool = True  # its rankers score by wᵀx, so that there is a weight for each feature
    selects: bool = True  # it leaves features out
    needs: tuple[str, ...] = ()  # some of "validation", "binary labels", "seed"
    backend: bool = False  # it can train a whole population, and so evaluate a search
    recommended: bool = False  # it finds good fronts soonest, see ``moerank searches moerank-6``
    fixed: Mapping[str, Any] = field(default_factory=dict)  # arguments that the name fixes

    def settled(self, parameters: Mapping[str, object]) -> Parameters:
        """Return the arguments with the fixed ones added; a fixed mapping fixes only the keys it has.

        >>> solvers()["mofsrank-paper"].settled({"ensemble": {"generations": 5}, "final": "knee"})["ensemble"]
        {'generations': 5, 'keep_members': False, 'count': 'bits'}
        """
        settled = {**parameters}
        for name, value in self.fixed.items():
            argument = settled.get(name)
            if isinstance(value, Mapping) and isinstance(argument, Mapping):
                value = {**argument, **value}
            if argument is not False or not isinstance(value, Mapping):
                settled[name] = value
        return settled

    @property
    def kind(self) -> Any:
        """The class, which is imported on first use."""
        if isinstance(self.source, str):
            return resolve_name(f"moerank.{self.source}")
        return self.source

    def defaults(self) -> Parameters:
        """Return the parameters with their defaults, or with the values that the name fixes.

        >>> solvers()["adarank-map"].defaults()["measure"]
        'map'
        """
        parameters = signature(self.kind).parameters.values()
        takes_more = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        if takes_more and hasattr(self.kind, "get_params"):  # such as the rankers of XGBoost
            defaults = self.kind().get_params(deep=False)
        else:
            defaults = {parameter.name: parameter.default for parameter in parameters}
        return {**defaults, **self.settled({})}

    def make(self, **parameters: Any) -> Any:
        """Return the estimator, not fitted yet, with the fixed arguments as in `settled`."""
        parameters = self.settled(parameters)
        for parameter, find in NESTED_SOLVERS.items():
            if isinstance(text := parameters.get(parameter), str):
                name, arguments = read_solver(text)
                parameters[parameter] = find(name, arguments).make(**arguments)
        return self.kind(**parameters)


def make_solver(name: str, **parameters: Any) -> Any:
    """Return a solver by its name in the table.

    Parameters
    ----------
    name : str
        One of ``solvers()``.
    **parameters
        Arguments of the estimator. Its ``ranker`` or ``backend`` may be the text of another solver, as in
        ``make_solver("fs-ed", ranker="lambdamart[n_trees=200]")``.

    Returns
    -------
    estimator
        Not fitted yet; call ``fit(X, y, qid=…, validation=…)``.

    Raises
    ------
    ValueError
        For a name or a parameter that does not exist (the message suggests the nearest one), and for a text in place of
        a number.

    Examples
    --------
    >>> make_solver("rankrls", alpha=0.1)
    RankRLS(alpha=0.1)
    """
    return find_solver(name, parameters).make(**parameters)


def find_solver(name: str, parameters: Mapping[str, object]) -> SolverEntry:
    """Return the row of a solver after checking its parameters; errors as in `make_solver`."""
    entry = solver_entry(name)
    if entry is None:
        raise ValueError(unknown("solver", name, solvers()))
    defaults = entry.defaults()
    for parameter, value in parameters.items():
        if parameter not in defaults:
            raise ValueError(unknown(f"parameter of {name}", parameter, defaults))
        if isinstance(value, str) and isinstance(defaults[parameter], int | float):
            raise ValueError(f"{parameter} of {name} must be a number or a switch, not {value!r}")
        if isinstance(value, str) and parameter in NESTED_SOLVERS:
            NESTED_SOLVERS[parameter](*read_solver(value))
    return entry


def make_backend(name: str, **parameters: Any) -> Any:
    """Return a ranker that can serve as a fitness backend; arguments and errors as in `make_solver`.

    >>> make_backend("mofsrank")
    Traceback (most recent call last):
        ...
    ValueError: mofsrank cannot serve as a fitness backend; choose one of fsmrank, ranksvm-primal, ...
    """
    return find_backend(name, parameters).make(**parameters)


def find_backend(name: str, parameters: Mapping[str, object]) -> SolverEntry:
    """Return the row of a fitness backend after checking its parameters; errors as in `make_backend`."""
    backends = [entry.name for entry in solvers().values() if entry.backend]
    if solver_entry(name) is None:
        raise ValueError(unknown("backend", name, backends))
    entry = find_solver(name, parameters)
    if not entry.backend:
        message = f"{name} cannot serve as a fitness backend; choose one of {', '.join(backends)}"
        if entry.family == "ranker":
            message += f", and train {name} on its front: --set serve.rankers={name}"
        raise ValueError(message)
    return entry


# Parameters that take the text of another solver, with the functions that find its row.
NESTED_SOLVERS = {"ranker": find_solver, "backend": find_backend}


@lru_cache(maxsize=1)
def solvers() -> dict[str, SolverEntry]:
    """Return the table by name: the package's own solvers, then those of other installed packages.

    Other packages add theirs through the entry points ``moerank.solvers`` and, for rankers that can serve as a fitness
    backend, ``moerank.backends``: a `SolverEntry`, or a class with ``fit(X, y, qid)``, which gets the name of the entry
    point. Attributes ``family``, ``paper``, ``year``, ``linear``, ``selects`` and ``needs`` of such a class fill its
    row. A solver whose name is taken is left out with a warning.

    >>> solvers()["fsmrank"].family, solvers()["rankrls"].backend
    ('embedded', True)
    """
    table = {entry.name: entry for entry in _OWN}
    for group in ("moerank.backends", "moerank.solvers"):
        for name, offered in plugins(group).items():
            entry = _entry(name, offered, backend=group == "moerank.backends")
            if entry is not None and entry.name not in table:
                table[entry.name] = entry
                continue
            reason = (
                "the name is taken" if entry else "it is neither a class with fit nor a SolverEntry"
            )
            warnings.warn(f"entry point {group}: {name} is left out: {reason}", stacklevel=2)
    return table


def solver_entry(name: str) -> SolverEntry | None:
    """Return the row of a solver in the table, or of a class named as ``module:name``; None if there is neither."""
    if name in solvers() or not is_code(name):
        return solvers().get(name)
    offered = load_code(name)
    entry = _entry(name, offered, backend=not _selects(offered))
    if entry is None:
        raise ValueError(f"{name} is neither a class with fit nor a SolverEntry")
    return replace(entry, name=name)


def _entry(name: str, offered: object, *, backend: bool) -> SolverEntry | None:
    """Return the row of an object that another package offers; None if it is no solver."""
    if isinstance(offered, SolverEntry):
        return replace(offered, backend=offered.backend or backend)
    if not isinstance(offered, type) or not callable(getattr(offered, "fit", None)):
        return None
    selects = _selects(offered)
    return SolverEntry(
        name=name,
        family=getattr(offered, "family", "filter" if selects else "ranker"),
        paper=getattr(offered, "paper", f"{offered.__module__}.{offered.__qualname__}"),
        year=getattr(offered, "year", 0),
        source=offered,
        linear=getattr(offered, "linear", False),
        selects=selects,
        needs=getattr(offered, "needs", ()),
        backend=backend,
    )


def _selects(kind: object) -> bool:
    return bool(getattr(kind, "selects", hasattr(kind, "get_support")))


@lru_cache
def plugins(group: str, kind: Any = object) -> Parameters:
    """Return the objects that installed packages offer in a group of entry points, by name.

    A group is one of "moerank.solvers", "moerank.backends", "moerank.objectives", "moerank.metrics", "moerank.readers"
    and "moerank.exports". An entry point that cannot be loaded, or is no `kind`, is left out with a warning.
    """
    offered = {}
    for point in entry_points(group=group):
        try:
            if not isinstance(loaded := point.load(), kind):
                raise TypeError(f"it is no {getattr(kind, '__name__', kind)}")
            offered[point.name] = loaded
        except Exception as error:  # an error of another package must not stop this one
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"entry point {group}: {point.name} = {point.value} is left out: {reason}",
                stacklevel=2,
            )
    return offered


_code_allowed: ContextVar[bool] = ContextVar("code_allowed", default=False)


@contextmanager
def allow_code(allowed: bool = True) -> Iterator[None]:
    """Let texts such as ``package.module:name`` name your own solvers, backends, metrics and objectives.

    Such a text, in a problem file or on the command line, imports the module and so runs its code. It is refused
    outside this context, which commands enter with the option ``--allow-code``. Modules may also be in the working
    directory.

    >>> with allow_code():
    ...     make_solver("sklearn.linear_model:Ridge", alpha=2.0)
    Ridge(alpha=2.0)
    >>> make_solver("sklearn.linear_model:Ridge")
    Traceback (most recent call last):
        ...
    ValueError: sklearn.linear_model:Ridge names code, which runs only if the command has --allow-code
    """
    before = _code_allowed.set(allowed)
    try:
        yield
    finally:
        _code_allowed.reset(before)


def code_is_allowed() -> bool:
    """Return whether texts may name code here; see `allow_code`."""
    return _code_allowed.get()


def is_code(text: str) -> bool:
    """Return whether a text has the form ``package.module:name``."""
    return re.fullmatch(r"[^\W\d][\w.]*:[^\W\d]\w*", text) is not None


def names_of_code(values: object) -> list[str]:
    """Return the texts of the form ``package.module:name`` in JSON values, without parameters and cutoffs.

    >>> names_of_code({"metric": "mine:Success@3", "refit": ["mine.trees:Forest[depth=2]"], "unit": "pair"})
    ['mine:Success', 'mine.trees:Forest']
    """
    if isinstance(values, str):
        name = re.split(r"[\[@]", values, maxsplit=1)[0].strip()
        return [name] if is_code(name) else []
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, list):
        return [name for value in values for name in names_of_code(value)]
    return []


def load_code(text: str) -> Any:
    """Return the object that ``package.module:name`` names; a ValueError if code is not allowed or missing."""
    if not code_is_allowed():
        raise ValueError(f"{text} names code, which runs only if the command has --allow-code")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return resolve_name(text)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{text}: {error}") from None


def read_solver(text: str) -> tuple[str, Parameters]:
    """Read the text of a solver, NAME or NAME[key=value,…]; return its name and its parameters.

    A value that is valid JSON is read as JSON, any other as a text. Commas inside brackets and quotes do not separate.

    Raises a ValueError for text of another form.

    >>> read_solver("fs-ed[ranker=lambdamart[n_trees=200],n_features_to_select=5]")
    ('fs-ed', {'ranker': 'lambdamart[n_trees=200]', 'n_features_to_select': 5})
    """
    match = re.fullmatch(r"([\w.:-]+)(?:\[(.*)\])?", text.strip(), re.DOTALL)
    if match is None:
        raise ValueError(
            f"solver {text!r}: write NAME or NAME[key=value,…], as in fsmrank[lambda1=0.1]"
        )
    parameters = {}
    for part in split(match[2] or ""):
        key, equals, value = map(str.strip, part.partition("="))
        if not equals or not key:
            raise ValueError(f"solver {text!r}: {part!r} is not of the form key=value")
        if key in parameters:
            raise ValueError(f"solver {text!r}: {key} is given twice")
        parameters[key] = _read(value)
    return match[1], parameters


def format_argument(value: object) -> str:
    """Return the value of a parameter as a text that `read_solver` reads as the same value.

    Raises a TypeError if JSON cannot hold the value.
    """
    if isinstance(value, str) and _read(value) == value and split(f"x={value}") == [f"x={value}"]:
        return value
    return json.dumps(value, separators=(",", ":"))


def _read(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):  # not JSON, or thousands of digits or brackets
        return value


def split(text: str) -> list[str]:
    """Split a list of solvers at the commas outside brackets and quotes; empty parts are left out.

    >>> split('fsmrank[lambda1=0,lambda2=1], mofsrank[ensemble={"generations":5}],gas')
    ['fsmrank[lambda1=0,lambda2=1]', 'mofsrank[ensemble={"generations":5}]', 'gas']
    """
    parts, depth, is_quoted, start = [], 0, False, 0
    for index, sign in enumerate(text):
        if sign == '"' and text[index - 1 : index] != "\\":
            is_quoted = not is_quoted
        elif not is_quoted:
            depth += (sign in "[{(") - (sign in "]})")
            if sign == "," and depth == 0:
                parts.append(text[start:index])
                start = index + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


SERVERS = {
    "linear": ["rankrls"],
    "additive": ["additive", "additive[interactions=8]"],
    "trees": ["lambdamart[n_trees=300,n_leaves=15,min_leaf=20,patience=50]"],
}
"""The rankers that can serve, by what an engine must be able to score."""

PROPOSALS = (
    "lambdamart-gain[n_leaves=15,min_leaf=20]",
    "lambdamart-rfe[n_leaves=15,min_leaf=20,n_trees=80]",
    "lambdamart-permutation[n_leaves=15,min_leaf=20,n_permutations=2]",
)
"""Solvers whose orders of the features propose sets to the rankers that serve."""

BREIMAN = "Breiman: Random forests. Machine Learning, 2001"
CAO = (
    "Cao, Qin, Liu, Tsai, Li: Learning to rank: from pairwise approach to listwise approach. "
    "ICML, 2007"
)
CHAPELLE = (
    "Chapelle, Keerthi: Efficient algorithms for ranking with SVMs. Information Retrieval, 2010"
)
CHEN = (
    "Chen, Li, Dou, Liang, Lv: Ranking SVM with kernel approximation. Comput. Intell. "
    "Neurosci., 2017"
)
CHENG = "Cheng, Guo, Zhang: MOFSRank. Complexity, 2018"
DANG = (
    "Dang, Croft: Feature selection for document ranking. SIGIR workshop on feature generation "
    "and selection, 2010"
)
FREUND = (
    "Freund, Iyer, Schapire, Singer: An efficient boosting algorithm for combining "
    "preferences. JMLR, 2003"
)
FRIEDMAN = (
    "Friedman: Greedy function approximation: a gradient boosting machine. Annals of "
    "Statistics, 2001"
)
FURNIVAL = "Furnival, Wilson: Regressions by leaps and bounds. Technometrics, 1974"
GANJISAFFAR = (
    "Ganjisaffar, Caruana, Lopes: Bagging gradient-boosted trees for ranking models. SIGIR, 2011"
)
GENG = "Geng, Liu, Qin, Li: Feature selection for ranking. SIGIR, 2007"
GIGLI = "Gigli, Lucchese, Nardini, Perego: Fast feature selection for learning to rank. ICTIR, 2016"
GUPTA = (
    "Gupta, Rosso: Expected divergence based feature selection for learning to rank. COLING, 2012"
)
GUYON = (
    "Guyon, Weston, Barnhill, Vapnik: Gene selection for cancer classification. Machine "
    "Learning, 2002"
)
JIAO_MFFS = (
    "Jiao et al.: Benefiting from single-objective feature selection: a multiform approach. "
    "IEEE TCyb, 2023"
)
JIAO_PRDH = (
    "Jiao et al.: Multiobjective feature selection via reformulation and duplication. IEEE "
    "TEVC, 2024"
)
JOACHIMS = "Joachims: Training linear SVMs in linear time. KDD, 2006"
KUO = (
    "Kuo, Lee, Lin: Large-scale kernel RankSVM. SIAM International Conference on Data Mining, 2014"
)
LAI_FENCHEL = (
    "Lai et al.: Sparse learning-to-rank via an efficient primal-dual algorithm. IEEE TC, 2013"
)
LAI_FSM = "Lai, Pan, Tang, Yu: FSMRank. IEEE Trans. Neural Networks and Learning Systems, 2013"
LAPORTE = (
    "Laporte et al.: Nonconvex regularizations for feature selection in ranking. IEEE TNNLS, 2014"
)
LEE = "Lee, Lin: Large-scale linear RankSVM. Neural Computation, 2014"
LUCCHESE = "Lucchese et al.: ILMART: interpretable ranking with constrained LambdaMART. SIGIR, 2022"
LUNDBERG = (
    "Lundberg et al.: From local explanations to global understanding. Nature Machine "
    "Intelligence, 2020"
)
PAHIKKALA = (
    "Pahikkala et al.: An efficient algorithm for learning to rank from preference graphs. "
    "Mach. Learn., 2009"
)
PAHIKKALA_GREEDY = (
    "Pahikkala et al.: Greedy RankRLS. SIGIR workshop on feature generation and selection, 2010"
)
PETER = "Peter, Diego, Hamprecht, Nadler: Cost efficient gradient boosting. NIPS, 2017"
SCULLEY = "Sculley: Combined regression and ranking. KDD, 2010"
TIAN = (
    "Tian, Zhang, Wang, Jin: Large-scale sparse multiobjective optimization problems. IEEE "
    "TEVC, 2020"
)
TSAI = "Tsai, Liu, Qin, Chen, Ma: FRank: a ranking method with fidelity loss. SIGIR, 2007"
WU = (
    "Wu, Burges, Svore, Gao: Adapting boosting for information retrieval measures. Information "
    "Retrieval, 2010"
)
XU = "Xu, Li: AdaRank: a boosting algorithm for information retrieval. SIGIR, 2007"
XU_DAEA = (
    "Xu, Xue, Zhang: A duplication analysis-based EA for biobjective feature selection. IEEE "
    "TEVC, 2021"
)
YUE = (
    "Yue, Finley, Radlinski, Joachims: A support vector method for optimizing average "
    "precision. SIGIR, 2007"
)


def _row(name: str, family: Family, published: str, source: str, **columns: Any) -> SolverEntry:
    paper, _, year = published.rpartition(", ")
    return SolverEntry(name, family, paper, int(year), source, **columns)


def _ranker(name: str, published: str, kind: str, **row: Any) -> SolverEntry:
    return _row(name, "ranker", published, f"rankers.{kind}", selects=False, **row)


def _by_trees(name: str, family: Family, published: str, kind: str, **row: Any) -> SolverEntry:
    return _row(name, family, published, f"selectors.tree_filters:{kind}", linear=False, **row)


def _mofs_rank(
    name: str, published: str = CHENG, *, fixed: Parameters | None = None, **row: Any
) -> SolverEntry:
    if fixed is None:
        fixed = {"algorithm": name.partition("-")[2]}
    return _row(
        name, "evolutionary", published, "mofsrank:MOFSRank", needs=("seed",), fixed=fixed, **row
    )


# MOFSRank as in its paper: linear RankSVM, all non-dominated instance subsets, and ensembles alone.
_PAPER: Parameters = {
    "backend": "ranksvm-primal",
    "tune": True,
    "final": "train",
    "instance_selection": {"include_all": False, "max_subsets": 100},
    "ensemble": {"keep_members": False, "count": "bits"},
}
# Validation chooses the bins of the step functions.
_ADDITIVE: Parameters = {
    "algorithm": "staircase",
    "backend": "additive",
    "tune": True,
    "instance_selection": False,
}

PROMINENT = (
    "mofsrank",
    "mofsrank-paper",
    "fsmrank",
    "rankrls",
    "ranksvm-primal",
    "lambdamart",
    "gas-e",
)
"""Solvers whose colours in figures differ from each other."""

_OWN = (
    _mofs_rank("mofsrank", fixed={}),
    _mofs_rank("mofsrank-paper", fixed=_PAPER),
    *(
        _mofs_rank(f"mofsrank-{name}")
        for name in ("nsga3", "spea2", "agemoea2", "smsemoa", "rvea", "moead")
    ),
    _mofs_rank("mofsrank-staircase", recommended=True),
    _mofs_rank("mofsrank-additive", linear=False, fixed=_ADDITIVE),
    _mofs_rank("mofsrank-sparseea", TIAN),
    _mofs_rank("mofsrank-daea", XU_DAEA),
    _mofs_rank("mofsrank-prdh", JIAO_PRDH),
    _mofs_rank("mofsrank-mffs", JIAO_MFFS),
    _row("greedy-rankrls", "wrapper", PAHIKKALA_GREEDY, "selectors.greedy:GreedyRankRLS"),
    _row(
        "greedy-additive",
        "wrapper",
        PAHIKKALA_GREEDY,
        "selectors.greedy:GreedyAdditive",
        linear=False,
    ),
    _row("best-subset", "wrapper", FURNIVAL, "selectors.best_subset:BestSubset"),
    _row("fs-bfs", "wrapper", DANG, "selectors.fs_bfs:FSBFS"),
    _by_trees("lambdamart-rfe", "wrapper", GUYON, "LambdaMARTRFE"),
    _row("fsm-svm", "wrapper", LAI_FSM, "selectors.sparse_rankers:FSMSVM"),
    _row("single", "filter", GENG, "selectors.filter:SingleFeatures"),
    _row("gas", "filter", GENG, "selectors.gas:GAS"),
    _row("gas-e", "filter", LAI_FSM, "selectors.gas:GAS", fixed={"importance": "measure"}),
    _row("fs-ed", "filter", GUPTA, "selectors.fs_ed:FSED", needs=("validation",)),
    _row("ngas", "filter", GIGLI, "selectors.gas:NGAS"),
    _row("xgas", "filter", GIGLI, "selectors.gas:XGAS"),
    _row("hcas", "filter", GIGLI, "selectors.gas:HCAS"),
    _row(
        "permutation", "filter", BREIMAN, "selectors.filter:PermutationImportance", needs=("seed",)
    ),
    _row("fsmrank", "embedded", LAI_FSM, "rankers:FSMRank", backend=True),
    _row("fsmrank-subgradient", "embedded", LAI_FSM, "selectors.sparse_rankers:FSMRankSubgradient"),
    _row("fenchelrank", "embedded", LAI_FENCHEL, "selectors.sparse_rankers:FenchelRank"),
    *(
        _row(
            f"nonconvex-{penalty}",
            "embedded",
            LAPORTE,
            "selectors.sparse_rankers:NonconvexRanker",
            fixed={"penalty": penalty},
        )
        for penalty in ("lp", "log", "mcp")
    ),
    _by_trees("lambdamart-gain", "embedded", FRIEDMAN, "LambdaMARTGain"),
    _by_trees("lambdamart-shap", "embedded", LUNDBERG, "LambdaMARTSHAP"),
    _by_trees(
        "lambdamart-permutation", "embedded", BREIMAN, "LambdaMARTPermutation", needs=("seed",)
    ),
    _by_trees("ilmart", "embedded", LUCCHESE, "ILMART"),
    _by_trees("cegb", "embedded", PETER, "CEGB"),
    _ranker("ranksvm-primal", CHAPELLE, "rank_svm:RankSVM", backend=True),
    _ranker("ranksvm-struct", JOACHIMS, "structural_svm:RankSVMStruct"),
    _ranker("ranksvm-tron", LEE, "rank_svm:RankSVMTRON"),
    _ranker("rankrls", PAHIKKALA, "rank_rls:RankRLS", backend=True),
    _ranker("additive", PAHIKKALA, "additive:AdditiveRLS", linear=False, backend=True),
    _ranker("listnet", CAO, "list_net:ListNet"),
    _ranker("adarank-map", XU, "boosting:AdaRank", fixed={"measure": "map"}),
    _ranker("adarank-ndcg", XU, "boosting:AdaRank", fixed={"measure": "ndcg"}),
    _ranker("svm-map", YUE, "structural_svm:SVMMAP"),
    _ranker("crr", SCULLEY, "rank_rls:CombinedRegressionRanking"),
    _ranker("ranksvm-kernel", KUO, "kernel:KernelRankSVM", linear=False),
    _ranker("rank-nystrom", CHEN, "kernel:RankNystrom", linear=False, needs=("seed",)),
    _ranker("rank-fourier", CHEN, "kernel:RankFourier", linear=False, needs=("seed",)),
    _ranker("rankboost", FREUND, "boosting:RankBoost", linear=False),
    _ranker("frank", TSAI, "boosting:FRank", linear=False),
    _ranker("lambdamart", WU, "lambda_mart:LambdaMART", linear=False),
    _ranker("bl-mart", GANJISAFFAR, "lambda_mart:BaggedLambdaMART", linear=False, needs=("seed",)),
)

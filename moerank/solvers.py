"""The table of solvers: every ranker and every feature selection, under one name each, made the same way."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from moerank.checks import unknown

__all__ = ["FAMILIES", "SolverEntry", "ablated", "make_backend", "make_solver", "plugins", "solvers", "with_ablations"]

ABLATED = "mofsrank"
"""The solver whose parts the ablations leave out."""

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
    """A row of the table.

    Attributes
    ----------
    name : str
        How the command line and `make_solver` call the solver.
    family : str
        "filter", "wrapper", "embedded", "evolutionary", or "ranker" without a selection of its own.
    paper : str
        Authors, and where the method was published.
    year : int
        Year of that publication.
    linear : bool
        Whether its rankers score by wᵀx, so that there is a weight for each feature.
    selects : bool
        Whether it leaves features out.
    needs : tuple of str
        What it cannot work without: "validation", "binary labels", "seed".
    make : callable
        Returns the estimator for its keyword arguments; imports what it needs only then.
    backend : bool
        Whether it can train a whole population (``fit_population``) and so serve a search as fitness backend.
    ablates : str
        What it leaves out of MOFSRank, for the rows that are there to show what that is worth.
    recommended : bool
        Whether it finds good fronts soonest of all searches, as ``tests/benchmarks/fronts.py`` measures them.
    """

    name: str
    family: Family
    paper: str
    year: int
    linear: bool
    selects: bool
    needs: tuple[str, ...]
    make: Callable[..., Any]
    backend: bool = False
    ablates: str = ""
    recommended: bool = False


def make_solver(name: str, **parameters: Any) -> Any:
    """Return a solver by its name in the table.

    Parameters
    ----------
    name : str
        One of ``solvers()``.
    **parameters
        Arguments of the estimator.

    Returns
    -------
    estimator
        Not fitted yet; call ``fit(X, y, qid=…, validation=…)``.

    Raises
    ------
    ValueError
        For a name or a parameter that does not exist, where the message suggests the nearest one, and for a text in
        place of a number.

    Examples
    --------
    >>> make_solver("rankrls", alpha=0.1)
    RankRLS(alpha=0.1)
    """
    table = solvers()
    if name not in table:
        raise ValueError(unknown("solver", name, table))
    known = table[name].make().get_params(deep=False)
    for parameter, value in parameters.items():
        if parameter not in known:
            raise ValueError(unknown(f"parameter of {name}", parameter, known))
        if isinstance(value, str) and isinstance(known[parameter], int | float):
            raise ValueError(f"{parameter} of {name} is a number or a switch, not {value!r}")
    return table[name].make(**parameters)


def make_backend(name: str, **parameters: Any) -> Any:
    """Return a ranker that can serve as fitness backend; arguments and errors as in `make_solver`.

    Examples
    --------
    >>> make_backend("mofsrank")
    Traceback (most recent call last):
        ...
    ValueError: mofsrank cannot serve as fitness backend; choose one of fsmrank, ranksvm-primal, rankrls
    """
    ranker = make_solver(name, **parameters)
    if not solvers()[name].backend:
        able = ", ".join(entry.name for entry in solvers().values() if entry.backend)
        instead = f", and train {name} on its front: --set search.refit={name}" * (solvers()[name].family == "ranker")
        raise ValueError(f"{name} cannot serve as fitness backend; choose one of {able}{instead}")
    return ranker


@lru_cache(maxsize=1)
def solvers() -> dict[str, SolverEntry]:
    """Return the table by name: the package's own solvers, then those of other installed packages.

    Other packages add theirs as `SolverEntry` objects through the entry points ``moerank.solvers`` and, for rankers
    that can serve as fitness backend, ``moerank.rankers``. One that cannot be loaded, or takes a name that is taken,
    is left out with a warning.

    Examples
    --------
    >>> solvers()["fsmrank"].family, solvers()["rankrls"].backend
    ('embedded', True)
    """
    table = {entry.name: entry for entry in _OWN}
    for group in ("moerank.rankers", "moerank.solvers"):
        for point in entry_points(group=group):
            entry = _third_party_entry(point)
            if entry is None:
                continue
            if entry.name in table:
                _warn(point, f"the name {entry.name!r} is taken")
                continue
            table[entry.name] = replace(entry, backend=True) if group == "moerank.rankers" else entry
    return table


@lru_cache
def plugins(group: str) -> dict[str, Any]:
    """Return the objects that installed packages offer in a group of entry points, by name.

    Parameters
    ----------
    group : str
        "moerank.solvers", "moerank.backends", "moerank.objectives", "moerank.metrics", "moerank.readers" or
        "moerank.exports".

    Warns
    -----
    UserWarning
        If an entry point cannot be loaded, which leaves it out.
    """
    found = {}
    for point in entry_points(group=group):
        try:
            found[point.name] = point.load()
        except Exception as error:  # an error of another package must not stop this one
            _warn(point, f"{type(error).__name__}: {error}")
    return found


def ablated() -> dict[str, str]:
    """Return what each ablation of MOFSRank in the table leaves out.

    Examples
    --------
    >>> ablated()["mofsrank-no-ensemble"]
    'ensemble'
    """
    return {entry.name: entry.ablates for entry in solvers().values() if entry.ablates}


def with_ablations() -> tuple[str, ...]:
    """Return MOFSRank and its ablations, by their names in the table."""
    return (ABLATED, *ablated())


def _third_party_entry(point: EntryPoint) -> SolverEntry | None:
    try:
        entry = point.load()
    except Exception as error:  # whatever another package does wrong must not stop this one
        _warn(point, f"{type(error).__name__}: {error}")
        return None
    if not isinstance(entry, SolverEntry):
        _warn(point, f"it is a {type(entry).__name__}, not a SolverEntry")
        return None
    return entry


def _warn(point: EntryPoint, reason: str) -> None:
    warnings.warn(f"entry point {point.group}: {point.name} = {point.value} is left out: {reason}", stacklevel=3)


def _maker(path: str, **fixed: Any) -> Callable[..., Any]:
    """Return what imports "module:Class" and makes it, some of its arguments fixed, or some settings of these."""
    module, _, name = path.partition(":")

    def make(**parameters: Any) -> Any:
        for parameter, value in fixed.items():
            given = parameters.get(parameter)
            if isinstance(value, Mapping) and isinstance(given, Mapping):
                value = {**given, **value}
            parameters[parameter] = value
        return getattr(import_module(f"moerank.{module}"), name)(**parameters)

    return make


def _ranker(
    name: str,
    source: tuple[str, int],
    *,
    linear: bool = True,
    needs: tuple[str, ...] = (),
    backend: bool = False,
) -> SolverEntry:
    """Return the row of a ranker that uses all features; its class stands in `moerank.rankers.named`."""

    def make(**parameters: Any) -> Any:
        return import_module("moerank.rankers.named").make_ranker(name, **parameters)

    paper, year = source
    return SolverEntry(name, "ranker", paper, year, linear, False, needs, make, backend)


def _row(
    name: str,
    family: Family,
    source: tuple[str, int],
    path: str,
    *,
    linear: bool = True,
    needs: tuple[str, ...] = (),
    backend: bool = False,
    ablates: str = "",
    recommended: bool = False,
    **fixed: Any,
) -> SolverEntry:
    paper, year = source
    make = _maker(path, **fixed)
    return SolverEntry(name, family, paper, year, linear, True, needs, make, backend, ablates, recommended)


CAO = ("Cao, Qin, Liu, Tsai, Li: Learning to rank: from pairwise approach to listwise approach. ICML", 2007)
CHAPELLE = ("Chapelle, Keerthi: Efficient algorithms for ranking with SVMs. Information Retrieval", 2010)
CHEN = ("Chen, Li, Dou, Liang, Lv: Ranking SVM with kernel approximation. Comput. Intell. Neurosci.", 2017)
CHENG = ("Cheng, Guo, Zhang: MOFSRank. Complexity", 2018)
DANG = ("Dang, Croft: Feature selection for document ranking. SIGIR workshop on feature generation and selection", 2010)
FREUND = ("Freund, Iyer, Schapire, Singer: An efficient boosting algorithm for combining preferences. JMLR", 2003)
FRIEDMAN = ("Friedman: Greedy function approximation: a gradient boosting machine. Annals of Statistics", 2001)
GANJISAFFAR = ("Ganjisaffar, Caruana, Lopes: Bagging gradient-boosted trees for ranking models. SIGIR", 2011)
GENG = ("Geng, Liu, Qin, Li: Feature selection for ranking. SIGIR", 2007)
GIGLI = ("Gigli, Lucchese, Nardini, Perego: Fast feature selection for learning to rank. ICTIR", 2016)
GUPTA = ("Gupta, Rosso: Expected divergence based feature selection for learning to rank. COLING", 2012)
GUYON = ("Guyon, Weston, Barnhill, Vapnik: Gene selection for cancer classification. Machine Learning", 2002)
JIAO_MFFS = (
    "Jiao, Xue, Zhang: Benefiting from single-objective feature selection: a multiform approach. IEEE Trans. Cybern.",
    2023,
)
JIAO_PRDH = (
    "Jiao, Xue, Zhang: Multiobjective feature selection via reformulation and duplication handling. IEEE TEVC",
    2024,
)
JOACHIMS = ("Joachims: Training linear SVMs in linear time. KDD", 2006)
KUO = ("Kuo, Lee, Lin: Large-scale kernel RankSVM. SIAM International Conference on Data Mining", 2014)
LAI_FENCHEL = (
    "Lai et al.: Sparse learning-to-rank via an efficient primal-dual algorithm. IEEE Trans. Computers",
    2013,
)
LAI_FSM = ("Lai, Pan, Tang, Yu: FSMRank. IEEE Trans. Neural Networks and Learning Systems", 2013)
LAPORTE = ("Laporte et al.: Nonconvex regularizations for feature selection in ranking. IEEE TNNLS", 2014)
LEE = ("Lee, Lin: Large-scale linear RankSVM. Neural Computation", 2014)
LUNDBERG = ("Lundberg et al.: From local explanations to global understanding. Nature Machine Intelligence", 2020)
PAHIKKALA = ("Pahikkala et al.: An efficient algorithm for learning to rank from preference graphs. Mach. Learn.", 2009)
PAHIKKALA_GREEDY = ("Pahikkala et al.: Greedy RankRLS. SIGIR workshop on feature generation and selection", 2010)
SCULLEY = ("Sculley: Combined regression and ranking. KDD", 2010)
TIAN = ("Tian, Zhang, Wang, Jin: Large-scale sparse multiobjective optimization problems. IEEE TEVC", 2020)
TSAI = ("Tsai, Liu, Qin, Chen, Ma: FRank: a ranking method with fidelity loss. SIGIR", 2007)
WU = ("Wu, Burges, Svore, Gao: Adapting boosting for information retrieval measures. Information Retrieval", 2010)
XU = ("Xu, Li: AdaRank: a boosting algorithm for information retrieval. SIGIR", 2007)
XU_DAEA = ("Xu, Xue, Zhang: A duplication analysis-based EA for biobjective feature selection. IEEE TEVC", 2021)
YUE = ("Yue, Finley, Radlinski, Joachims: A support vector method for optimizing average precision. SIGIR", 2007)


def _mofs_rank(name: str, source: tuple[str, int] = CHENG, **fixed: Any) -> SolverEntry:
    return _row(name, "evolutionary", source, "mofsrank:MOFSRank", needs=("seed",), **fixed)


def _nonconvex(penalty: str) -> SolverEntry:
    path = "selectors.nonconvex:NonconvexRanker"
    return _row(f"nonconvex-{penalty}", "embedded", LAPORTE, path, penalty=penalty)


_OWN = (
    _mofs_rank("mofsrank"),
    _mofs_rank("mofsrank-no-instance-selection", ablates="instance selection", instance_selection=False),
    _mofs_rank("mofsrank-no-adaptive-mutation", ablates="adaptive mutation", adaptive_mutation=False),
    _mofs_rank("mofsrank-no-ensemble", ablates="ensemble", ensemble=False),
    _mofs_rank("mofsrank-paper", ensemble={"keep_members": False}),
    _mofs_rank("mofsrank-nsga3", algorithm="nsga3"),
    _mofs_rank("mofsrank-spea2", algorithm="spea2"),
    _mofs_rank("mofsrank-agemoea2", algorithm="agemoea2"),
    _mofs_rank("mofsrank-smsemoa", algorithm="smsemoa"),
    _mofs_rank("mofsrank-rvea", algorithm="rvea"),
    _mofs_rank("mofsrank-moead", algorithm="moead"),
    _mofs_rank("mofsrank-staircase", algorithm="staircase", recommended=True),
    _mofs_rank("mofsrank-sparseea", TIAN, algorithm="sparseea"),
    _mofs_rank("mofsrank-daea", XU_DAEA, algorithm="daea"),
    _mofs_rank("mofsrank-prdh", JIAO_PRDH, algorithm="prdh"),
    _mofs_rank("mofsrank-mffs", JIAO_MFFS, algorithm="mffs"),
    _row("greedy-rankrls", "wrapper", PAHIKKALA_GREEDY, "selectors.greedy_rank_rls:GreedyRankRLS"),
    _row("fs-bfs", "wrapper", DANG, "selectors.fs_bfs:FSBFS"),
    _row("lambdamart-rfe", "wrapper", GUYON, "selectors:LambdaMARTRFE", linear=False),
    _row("fsm-svm", "wrapper", LAI_FSM, "selectors.fsm:FSMSVM"),
    _row("single", "filter", GENG, "selectors.filter:SingleFeatures"),
    _row("gas", "filter", GENG, "selectors.gas:GAS"),
    _row("gas-e", "filter", LAI_FSM, "selectors.gas:GAS", importance="measure"),
    _row("fs-ed", "filter", GUPTA, "selectors.fs_ed:FSED", needs=("validation",)),
    _row("ngas", "filter", GIGLI, "selectors.gas:NGAS"),
    _row("xgas", "filter", GIGLI, "selectors.gas:XGAS"),
    _row("hcas", "filter", GIGLI, "selectors.gas:HCAS"),
    _row("fsmrank", "embedded", LAI_FSM, "rankers:FSMRank", backend=True),
    _row("fsmrank-subgradient", "embedded", LAI_FSM, "selectors.fsm:FSMRankSubgradient"),
    _row("fenchelrank", "embedded", LAI_FENCHEL, "selectors.fenchel_rank:FenchelRank"),
    _nonconvex("lp"),
    _nonconvex("log"),
    _nonconvex("mcp"),
    _row("lambdamart-gain", "embedded", FRIEDMAN, "selectors:LambdaMARTGain", linear=False),
    _row("lambdamart-shap", "embedded", LUNDBERG, "selectors:LambdaMARTSHAP", linear=False),
    _ranker("ranksvm-primal", CHAPELLE, backend=True),
    _ranker("ranksvm-struct", JOACHIMS),
    _ranker("ranksvm-tron", LEE),
    _ranker("rankrls", PAHIKKALA, backend=True),
    _ranker("listnet", CAO),
    _ranker("adarank-map", XU),
    _ranker("adarank-ndcg", XU),
    _ranker("svm-map", YUE),
    _ranker("crr", SCULLEY),
    _ranker("ranksvm-kernel", KUO, linear=False),
    _ranker("rank-nystrom", CHEN, linear=False, needs=("seed",)),
    _ranker("rank-fourier", CHEN, linear=False, needs=("seed",)),
    _ranker("rankboost", FREUND, linear=False),
    _ranker("frank", TSAI, linear=False),
    _ranker("lambdamart", WU, linear=False),
    _ranker("bl-mart", GANJISAFFAR, linear=False, needs=("seed",)),
)

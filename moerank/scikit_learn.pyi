"""The types of what moerank takes from scikit-learn, which has none."""

from typing import Any, Self

from numpy.typing import ArrayLike

class BaseEstimator:
    """Base class of estimators."""

    @classmethod
    def _get_param_names(cls) -> list[str]: ...
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Self: ...
    def set_fit_request(self, **requests: bool | str | None) -> Self: ...
    def set_score_request(self, **requests: bool | str | None) -> Self: ...
    def __sklearn_clone__(self) -> Any: ...
    def __sklearn_tags__(self) -> Any: ...

class TransformerMixin:
    """Base class of estimators with ``transform``."""

    def set_output(self, *, transform: str | None = None) -> Self: ...
    def fit_transform(self, X: Any, y: ArrayLike | None = None, **fit_params: Any) -> Any: ...

class ConvergenceWarning(UserWarning):
    """Warning of a solver that did not converge."""

def clone(estimator: Any, *, safe: bool = True) -> Any:
    """Return an unfitted copy of an estimator."""

def check_is_fitted(estimator: Any, attributes: str) -> None:
    """Raise an error for an estimator without these attributes."""

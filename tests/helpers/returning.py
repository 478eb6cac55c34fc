"""A backend that returns what it is told to, such as scores that are columns of X."""


class Columns:
    """Scores that are columns of X: individual i ranks by feature i."""

    def __init__(self, n_individuals):
        self.n_individuals = n_individuals

    def scores(self, X):
        return X[:, : self.n_individuals]


class Returns:
    """A backend that returns what it is told to, and takes no argument that nobody gives."""

    def __init__(self, what):
        self.what = what

    def fit_population(self, train, *, feature_mask=None):
        return self.what

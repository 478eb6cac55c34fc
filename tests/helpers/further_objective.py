"""Results with a third objective, made by hand: what the features cost."""

from helpers.changes import replace

NAMES = ["features", "error", "cost"]


def cost(features):
    """The sum of the prices of features, from 0.5 to 6.5 each."""
    return sum(0.5 + (5 * feature) % 7 for feature in features)


def with_cost(result):
    """Return a result as a search with the further objective "cost" has it."""

    def priced(ranker):
        return replace(ranker, objectives={**ranker.objectives, "cost": float(cost(ranker.features))})

    return replace(
        result,
        objectives=NAMES,
        box={**result.box, "cost": (0.0, cost(range(len(result.feature_names))))},
        front=[priced(member) for member in result.front],
        baselines=[priced(baseline) for baseline in result.baselines],
    )

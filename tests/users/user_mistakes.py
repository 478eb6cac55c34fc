"""Mistakes that mypy must find: each line ignores one error, and an ignore without an error is an error."""

import moerank as mr
from moerank.rankers import train_population


def main() -> None:
    train, vali, test = mr.load_planted_fold(1)
    mr.RankSVN()  # type: ignore[attr-defined]
    mr.RankRLS(loss="pairs")  # type: ignore[arg-type]
    mr.FSMRank(similarity="cut")  # type: ignore[arg-type]
    mr.GAS(importance="losses")  # type: ignore[arg-type]
    mr.GAS(metric=10)  # type: ignore[arg-type]
    mr.NonconvexRanker("l1")  # type: ignore[arg-type]
    mr.AdaRank(reweighting="strong")  # type: ignore[arg-type]
    mr.NDCG(10, gain="exp")  # type: ignore[arg-type]
    mr.RankSVM(C="1")  # type: ignore[arg-type]
    mr.FeatureSelection(train, backend="listnet")  # type: ignore[arg-type]
    train_population(mr.ListNet(), train)  # type: ignore[arg-type]
    mr.SingleFeatures(ranker="ranksvm")  # type: ignore[arg-type]
    mr.RankSVM().fit(train, validation=5)  # type: ignore[arg-type]
    mr.RankSVM().fit(train, vali.y, vali.qid)  # type: ignore[call-arg]
    wrong: str = mr.NDCG(10).score(test, mr.RankSVM().fit(train).predict(test))  # type: ignore[assignment]
    mr.RankSVM().fit(train).predikt(test)  # type: ignore[attr-defined]
    print(mr.RankSVM().fit(train).coefs_)  # type: ignore[attr-defined]
    print(wrong)

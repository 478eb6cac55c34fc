"""Mistakes that a user's mypy must find: each at the line that is marked with its code, and no other."""

import moerank as mr
from moerank.rankers import train_population


def main() -> None:
    train, vali, test = mr.load_planted_fold(1)
    mr.RankSVN()  # error: attr-defined
    mr.RankRLS(loss="pairs")  # error: arg-type
    mr.FSMRank(similarity="cut")  # error: arg-type
    mr.GAS(importance="losses")  # error: arg-type
    mr.GAS(metric=10)  # error: arg-type
    mr.NonconvexRanker("l1")  # error: arg-type
    mr.AdaRank(reweighting="strong")  # error: arg-type
    mr.CombinedRegressionRanking(loss="hinge")  # error: arg-type
    mr.NDCG(10, gain="exp")  # error: arg-type
    mr.RankSVM(C="1")  # error: arg-type
    mr.FeatureSelection(train, backend="listnet")  # error: arg-type
    train_population(mr.ListNet(), train)  # error: arg-type
    mr.SingleFeatures(ranker="ranksvm")  # error: arg-type
    mr.RankSVM().fit(train, validation=5)  # error: arg-type
    mr.RankSVM().fit(train, vali.y, vali.qid)  # error: call-arg
    wrong: str = mr.NDCG(10).score(test, mr.RankSVM().fit(train).predict(test))  # error: assignment
    mr.RankSVM().fit(train).predikt(test)  # error: attr-defined
    print(mr.RankSVM().fit(train).coefs_)  # error: attr-defined
    print(wrong)

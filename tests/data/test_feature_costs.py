import numpy as np
import pytest

from moerank.data import FeatureCosts, RankingData
from moerank.data.read.cost_table import read_cost_table

NAMES = ["bm25", "length", "age", "clicks"]
TABLE = "name,cost,group,group_cost\nclicks,4,log,\nlength,1,body,10\nbm25,2,body,10.0\nage,0.5,,\n"


MASKS = np.array([[bool(number >> f & 1) for f in range(4)] for number in range(16)])


@pytest.fixture
def read(tmp_path):
    """Write a table of costs and read it."""

    def read(text, *arguments):
        (tmp_path / "t.csv").write_text(text)
        return read_cost_table(tmp_path / "t.csv", *arguments)

    return read


def costs():
    return FeatureCosts.of([2, 1, 0.5, 4], ["body", "body", None, "log"], {"body": 10})


def literal(mask):
    total = sum(price for price, used in zip([2, 1, 0.5, 4], mask, strict=True) if used)
    return total + 10 * (mask[0] or mask[1])


def test_a_group_is_paid_once_for_all_sets_of_features():
    expected = [literal(mask) for mask in MASKS]
    np.testing.assert_array_equal(costs().sums(MASKS), expected)
    np.testing.assert_array_equal([costs().sums(mask[None])[0] for mask in MASKS], expected)
    assert costs().total == 17.5


def test_the_costs_of_some_features_keep_their_groups():
    kept = np.array([True, False, True, True])
    masks = np.array([[True, True, False], [False, True, True]])
    np.testing.assert_array_equal(costs().of_features(kept).sums(masks), [12.5, 4.5])
    rest = costs().of_features(np.array([False, False, True, True]))  # one group has lost its features
    assert rest.sums(np.array([[True, True], [False, False]])).tolist() == [4.5, 0.0]


def test_a_table_is_read_by_name_in_any_order(read):
    found = read(TABLE, NAMES)
    np.testing.assert_array_equal(found.sums(MASKS), costs().sums(MASKS))
    for text in ("name,cost\na,1\nb,2\n", 'cost; name\n 1;"a"\n2;"b"\n'):
        assert read(text, ["b", "a"]).own.tolist() == [2.0, 1.0]


def test_further_columns_hold_numbers_of_the_features(read):
    found = read("name,latency,cost\na,-0.5,1\nb,2e3,2\n", ["b", "a"])
    assert found.numbers["latency"].tolist() == [2000.0, -0.5]
    assert found.of_features(np.array([False, True])).numbers["latency"].tolist() == [-0.5]
    with pytest.raises(ValueError, match="'c' has no row"):  # what it costs is known, its latency is not
        read("name,latency,cost\na,-0.5,1\nb,2e3,2\n", ["b", "a", "c"], 1.0)


def test_features_that_the_table_does_not_name_cost_as_others(read):
    found = read("name,cost,group,group_cost\na,2,g,5\n", ["b", "a", "c"], 0.5)
    assert found.own.tolist() == [0.5, 2.0, 0.5]
    assert found.group.tolist() == [-1, 0, -1]
    assert found.sums(np.eye(3, dtype=bool)).tolist() == [0.5, 7.0, 0.5]
    with pytest.raises(ValueError, match=r"'z' is not a feature"):
        read("name,cost\nz,2\n", ["a"], 1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the columns must be name, cost"),
        ("name,price\n", "the columns must be"),
        ("name,cost,cost\n", "the columns must be"),
        ("name,cost,owner\nbm25,1,me\n", "'bm25' has no finite number in the column 'owner'"),
        (TABLE.replace("bm25,2", "bm52,2"), "'bm52' is not a feature of the data"),
        (TABLE.replace("bm25,2", "age,2"), "'age' has two rows"),
        *(
            (TABLE.replace("age,0.5", f"age,{c}"), "'age' has a cost that is not a number")
            for c in ("nan", -1, "x", "1e999", "")
        ),
        (TABLE.replace("age,0.5,,", "age,0.5"), "t.csv, line 5: 2 fields, but the header names 4 columns"),
        (TABLE.replace("age,0.5,,", "age,0.5,,3"), "'age' has a group_cost without a group"),
        (TABLE.replace("10.0", "free"), "'bm25' has a group_cost that is not a number from 0 on"),
        (TABLE.replace("10.0", "11"), "'length' is in a group with two costs"),
        (TABLE.replace("age,0.5,,\n", ""), "'age' has no row; give each feature one row with its cost"),
        (TABLE.replace("age", '"age'), "line 5: not a CSV file: unexpected end of data"),
    ],
)
def test_a_wrong_table_is_refused_by_feature_or_line(read, text, message):
    with pytest.raises(ValueError, match=r"t\.csv[:,] ") as error:
        read(text, NAMES)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, -2],), "costs[1] is -2"),
        (([1, np.inf],), "costs[1] is inf"),
        ((["dear"],), "costs must be numbers"),
        (([[1.0]],), "costs has shape (1, 1); give 1 numbers"),
        (([1, 2], ["a"]), "groups has 1 entries; give one for each of 2 costs"),
        (([1, 2], None, None, {"ms": [1]}), "ms has shape (1,); give 2 numbers"),
        (([1, 2], None, None, {"ms": [1, np.nan]}), "ms[1] is nan"),
        (([1, 2], ["a", None], {"b": 1}), "group_costs: unknown group 'b'"),
    ],
)
def test_wrong_costs_are_refused(arguments, message):
    with pytest.raises(ValueError, match=r"costs|groups|ms") as error:
        FeatureCosts.of(*arguments)
    assert message in str(error.value)


def test_data_carry_their_costs():
    data = RankingData(np.arange(12.0).reshape(3, 4), y=[0, 1, 2], qid=0, costs=costs())
    assert data.with_rows(np.array([0, 1])).costs is data.costs
    assert data.with_features(np.array([True, False, True, True])).costs.own.tolist() == [2, 0.5, 4]
    assert RankingData(data.X, data.y, 0).with_costs([1, 2, 3, 4]).costs.total == 10.0
    with pytest.raises(ValueError, match="data: 3 costs were given for 4 features"):
        data.with_costs([1, 2, 3])

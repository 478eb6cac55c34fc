import numpy as np
import pytest

from moerank.data import load_letor, load_table

TEXT = "2 qid:7 1:0.5 3:1e-5 #docid = a\n0 qid:7 2:NULL #docid = b\n1 qid:3 1:0.1 # c\n"


@pytest.mark.parametrize("rule", [0.5, "query-worst"])
def test_a_letor_file_becomes_a_table_with_the_same_data(command, tmp_path, rule):
    path, out = tmp_path / "train.txt", tmp_path / "train.parquet"
    path.write_text(TEXT)
    done = command("data", "convert", str(path), "--out", str(out))
    assert done.stdout == f"3 documents with 3 features in {out}\n"
    for dtype in (None, np.float32):
        data, table = load_letor(path, missing=rule, dtype=dtype), load_table(out, missing=rule, dtype=dtype)
        for name in ("X", "y", "qid", "offsets", "documents", "n_missing"):
            np.testing.assert_array_equal(getattr(table, name), getattr(data, name))
        assert table.X.dtype == np.float32  # 0.1, 0.5 and 1e-5 differ in single precision, too
        assert (table.feature_names, table.scaling) == (data.feature_names, data.scaling)

"""Pandas is imported by its first user, and PyArrow recognizes its objects afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from importlib.util import find_spec
from penstock.core.deferred_pandas import defer_pandas, hidden_pandas, is_deferred
defer_pandas()
defer_pandas()
import pyarrow as pa
pa.array([1, None])
pa.table({"a": ["x"]}).to_pylist()
assert is_deferred() and "pandas" not in sys.modules
with hidden_pandas():
    try:
        import pandas
        raise AssertionError("pandas is visible")
    except ImportError:
        pass
assert find_spec("pandas") is not None and is_deferred()
import pandas as pd
assert not is_deferred() and pd.__loader__ is pd.__spec__.loader is find_spec("pandas").loader
assert pa.array(pd.Series([1.0, float("nan")])).null_count == 1
assert pa.table({"a": [1]}).to_pandas()["a"].tolist() == [1]
with hidden_pandas():
    import pandas
"""


@pytest.mark.slow
def test_pyarrow_imports_pandas_with_its_first_user() -> None:
    """Without the hook PyArrow would take a series for a list, and keep NaN in place of null."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)

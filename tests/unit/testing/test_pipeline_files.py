"""The pipeline files whose test cases a command runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.testing.suite import find_pipeline_files


@pytest.mark.parametrize(
    ("existing", "named", "found"),
    [
        (["x.sql", "x.test.yaml"], ["x.test.yaml"], ["x.sql"]),
        (["x.yaml", "x.test.yaml"], ["x.test.yaml", "x.yaml"], ["x.yaml"]),
        (["x.sql", "x.test.yaml"], ["x.sql", "x.test.yaml"], ["x.sql"]),
        (["x.test.yaml"], ["x.test.yaml"], ["x.test.yaml"]),
        (["x.sql", "x.yaml"], ["x.yaml"], ["x.yaml"]),
        (["x.sql"], ["x.yaml"], ["x.yaml"]),
    ],
)
def test_a_test_file_is_replaced(
    existing: list[str], named: list[str], found: list[str], tmp_path: Path
) -> None:
    for name in existing:
        (tmp_path / name).touch()
    expected = [tmp_path / name for name in found]
    assert find_pipeline_files([tmp_path / name for name in named]) == expected

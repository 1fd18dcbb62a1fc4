"""Static tables that are kept with the state of an updating query."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.core.errors import StateError
from penstock.engine.updating.kept_tables import (
    TABLES,
    has_changed,
    is_kept,
    keep_table,
    kept_table,
)

NAMES = pa.table({"id": [1, 2], "name": ["a", None], "x": [1.5, float("nan")]})


def test_columns_of_a_kept_table_are_found_by_name(tmp_path: Path) -> None:
    assert (is_kept(tmp_path, "names"), kept_table(tmp_path, "names", NAMES.schema)) == (
        False,
        None,
    )
    keep_table(tmp_path, "names", NAMES)
    other = NAMES.select(["name", "id"])
    kept = kept_table(tmp_path, "names", other.schema)
    assert kept is not None and kept.equals(other)
    assert [path.name for path in (tmp_path / TABLES).iterdir()] == ["names.arrow"]


def test_another_column_is_an_error(tmp_path: Path) -> None:
    keep_table(tmp_path, "names", NAMES)
    columns = pa.schema([("id", pa.int32()), ("city", pa.string())])
    with pytest.raises(StateError) as raised:
        kept_table(tmp_path, "names", columns)
    assert raised.value.code == "changed-plan"
    assert '"city" string is new' in str(raised.value.detail)


def test_rows_are_compared(tmp_path: Path) -> None:
    keep_table(tmp_path, "names", NAMES)
    same = pa.concat_tables([NAMES.slice(0, 1), NAMES.slice(1)])
    assert not has_changed(tmp_path, "names", same)
    assert has_changed(tmp_path, "names", NAMES.slice(1))
    assert not has_changed(tmp_path, "others", NAMES)


def test_damaged_table_is_an_error(tmp_path: Path) -> None:
    keep_table(tmp_path, "names", NAMES)
    path = tmp_path / TABLES / "names.arrow"
    path.write_bytes(path.read_bytes()[:9])
    with pytest.raises(StateError, match=r"names\.arrow cannot be read") as raised:
        kept_table(tmp_path, "names", NAMES.schema)
    assert raised.value.code == "corrupt-state"

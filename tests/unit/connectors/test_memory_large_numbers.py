"""Rows of a memory source with numbers that their column cannot hold."""

from __future__ import annotations

import pytest

from penstock.core.errors import DecodeError
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.columns.rows import batch_of


@pytest.mark.parametrize("type_", ["LONG", "INT", "DECIMAL(10,0)", "TIMESTAMP"])
@pytest.mark.parametrize("value", [10**20, -(10**20), 10**400])
def test_a_number_out_of_range_is_a_bad_record(type_: str, value: int) -> None:
    with pytest.raises(DecodeError, match='column "v"'):
        batch_of([{"v": value}], arrow_schema(f"v {type_}"))

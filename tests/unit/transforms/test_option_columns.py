"""Columns that options of transforms name, in any case."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.core.errors import PlanError
from penstock.sdk import Context
from penstock.transforms.columns import require
from penstock.transforms.drop import Drop, DropConfig

FRAME: Any = SimpleNamespace(columns=["id", "Seen"])


def test_names_are_compared_without_case() -> None:
    drop = Drop(DropConfig(columns=["ID", "seen"]), Context(node="less"))
    require(drop, FRAME, "columns", drop.config.columns)


def test_an_unknown_column_is_an_error() -> None:
    drop = Drop(DropConfig(columns=["id", "sen"]), Context(node="less"))
    with pytest.raises(PlanError, match='transform "less": there is no column "sen"') as caught:
        require(drop, FRAME, "columns", drop.config.columns)
    assert caught.value.hint == 'did you mean "Seen"?'

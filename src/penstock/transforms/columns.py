"""Checks of columns that options name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.core.errors import raise_all
from penstock.core.text import did_you_mean
from penstock.sdk import PlanError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def require(frame: DataFrame, names: Iterable[str]) -> None:
    """Raises PlanError for each name that is not a column of `frame`."""
    known = {column.lower() for column in frame.columns}
    raise_all(
        PlanError(
            f'the input has no column "{name}"',
            code="unknown-column",
            hint=did_you_mean(name, frame.columns),
        )
        for name in names
        if name.lower() not in known
    )

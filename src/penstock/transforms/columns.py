"""Checks of columns that options name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.core.errors import OptionError, raise_all
from penstock.core.names import written_name
from penstock.core.text import did_you_mean
from penstock.sdk import DataFrameTransform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def require(
    transform: DataFrameTransform[Any],
    frame: DataFrame,
    option: str,
    names: Sequence[str] | Mapping[str, object],
) -> None:
    """Raises OptionError for each name in an option of a transform that is no column of `frame`."""
    known = {column.lower() for column in frame.columns}
    node = written_name(transform.context.node)
    raise_all(
        OptionError.of(
            option,
            name if isinstance(names, Mapping) else index,
            message=f'transform "{node}": there is no column "{name}"',
            code="unknown-column",
            hint=did_you_mean(name, frame.columns),
            of_key=True,
        )
        for index, name in enumerate(names)
        if name.lower() not in known
    )

"""Checks of the columns that a pipeline declares for a table or a query."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from penstock.core.errors import OptionError
from penstock.core.text import did_you_mean
from penstock.sdk.columns.names import fold


def check_declared(
    columns: pa.Schema | None, known: Collection[str], relation: str, *, folds: bool = False
) -> None:
    """Raises OptionError for a declared column that a table or a query does not have.

    With `folds` names that differ by case are equal.
    """
    names = {fold(name) for name in known} if folds else known
    for name in [] if columns is None else columns.names:
        if (fold(name) if folds else name) not in names:
            raise OptionError.of(
                "schema", of_key=True, code="unknown-column",
                message=f'{relation} has no column "{name}"', hint=did_you_mean(name, known),
            )  # fmt: skip

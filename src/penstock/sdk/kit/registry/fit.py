"""Whether rows fit a schema that they are to be written by."""

from __future__ import annotations

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.sdk.kit.columns import conform, reason


def need_fields(columns: pa.Schema, whole: pa.Schema, shown: str, closed: bool = True) -> None:
    """Raises PlanError for a column that a closed schema lacks, or one that the schema needs."""
    for name in columns.names if closed else ():
        if name not in whole.names:
            raise PlanError(
                f'{shown} has no field "{name}"',
                code="unknown-column",
                hint=did_you_mean(name, whole.names),
            )
    for field in whole:
        if field.name not in columns.names and not field.nullable:
            raise PlanError(
                f'{shown} needs the field "{field.name}", which is not a column',
                code="missing-column",
            )


def need_fit(columns: pa.Schema, whole: pa.Schema, shown: str) -> None:
    """As `need_fields`, and for a column whose type can never become that of the schema."""
    need_fields(columns, whole, shown)
    try:
        conform(pa.RecordBatch.from_pylist([], columns), whole)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise PlanError(f"rows do not fit {shown}: {reason(error)}", code="wrong-type") from None

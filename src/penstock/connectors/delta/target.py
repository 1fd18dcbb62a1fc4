"""The table of a sink: its creation, its columns, and checks before the first batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.connectors.delta.client import Location
from penstock.connectors.delta.errors import convert_errors
from penstock.connectors.delta.types import arrow_schema, delta_schema, field_properties
from penstock.core.errors import OptionError, Permanent
from penstock.sdk import SchemaChanges
from penstock.sdk.columns.names import find_name
from penstock.sdk.lakes.commits import Conflict

_UNSUPPORTED_PROPERTIES = {
    "delta.invariants": "an invariant",
    "delta.generationExpression": "a generated value",
    "delta.identity.start": "an identity",
    "delta.identity.step": "an identity",
}


@dataclass(frozen=True)
class Target:
    """The columns of a table, and those of its partitions."""

    columns: pa.Schema
    partition_by: tuple[str, ...]

    @classmethod
    def of(cls, table: Any) -> Target:
        """Returns the columns of a table."""
        partition_by = tuple(table.metadata().partition_columns)
        return cls(arrow_schema(table.schema()), partition_by)

    def fields(self, names: Sequence[str]) -> list[pa.Field]:
        """Returns the columns with names of rows. Raises Permanent for a missing one."""
        found = [find_name(name, self.columns.names) for name in names]
        missing = [name for name, index in zip(names, found, strict=True) if index < 0]
        if missing:
            raise Permanent(
                f'the table has no column "{missing[0]}"', code="target-schema",
                hint="Start the run again: it was renamed or dropped during the run.",
            )  # fmt: skip
        return [self.columns.field(index) for index in found]


def open_target(location: Location) -> Any:
    """Returns the table of a sink. Raises OptionError if it does not exist."""
    table = location.open()
    if table is None:
        raise OptionError.of(
            "path", message=f'there is no table of Delta Lake at "{location.path}"',
            code="unknown-table", hint="Set create: true.",
        )  # fmt: skip
    return table


def create_table(location: Location, columns: pa.Schema, partition_by: Sequence[str]) -> None:
    """Creates a table, unless another writer does it first."""
    from deltalake import DeltaTable

    try:
        with convert_errors("create", location.path):
            DeltaTable.create(
                location.path, delta_schema(columns), "ignore", [*partition_by],
                storage_options=location.options,
            )  # fmt: skip
    except Conflict:
        open_target(location)


def add_columns(location: Location, changes: SchemaChanges) -> None:
    """Adds the missing columns to a table, each of them once."""
    table = open_target(location)
    known = Target.of(table).columns.names
    missing = [
        pa.field(change.name, change.rows) for change in changes.missing if change.name not in known
    ]
    if missing:
        with convert_errors("change", location.path):
            table.alter.add_columns([*delta_schema(pa.schema(missing)).fields])


def check_writable(table: Any, path: str) -> None:
    """Raises Permanent for a table with rules that the files of the sink would not follow."""
    properties = field_properties(table.schema())
    configuration = table.metadata().configuration
    found = [
        f'column "{properties[name]}" has {kind}'
        for name, kind in _UNSUPPORTED_PROPERTIES.items()
        if name in properties
    ]
    found += [
        f'it has the constraint "{name.removeprefix("delta.constraints.")}"'
        for name in configuration
        if name.startswith("delta.constraints.")
    ]
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        found.append("its columns are mapped (delta.columnMapping.mode)")
    if found:
        raise Permanent(
            f"cannot write to {path}: {'; '.join(found)}",
            code="unsupported-table",
            hint="Write to a table without these features.",
        )


def check_partition_columns(table: Any, expected: Sequence[str]) -> None:
    """Raises OptionError if `partition_by` is set, and the table has other partition columns."""
    found = Target.of(table).partition_by
    if expected and [*expected] != [*found]:
        names = ", ".join(found) or "no columns"
        raise OptionError.of(
            "partition_by", message=f"the table is partitioned by {names}", code="invalid-option",
            hint="Remove partition_by: it is for new tables.",
        )  # fmt: skip

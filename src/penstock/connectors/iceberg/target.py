"""The table of a sink: its creation, its columns, and checks before the first batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import pyarrow as pa

from penstock.connectors.iceberg.client import TableAccess
from penstock.connectors.iceberg.config import IcebergSinkConfig
from penstock.connectors.iceberg.errors import convert_errors
from penstock.connectors.iceberg.partitioning import Partitioning, described, partition_spec
from penstock.connectors.iceberg.types import iceberg_schema, iceberg_type, row_schema
from penstock.core.errors import OptionError, Permanent, PlanError
from penstock.sdk import SchemaChanges
from penstock.sdk.columns.names import find_name, fold
from penstock.sdk.lakes.commits import repeat_conflicts

HINT = "Set create: true."


@dataclass(frozen=True)
class Target:
    """The table of a sink at the time at which a task or the driver opens it."""

    table: Any

    def refreshed(self) -> Target:
        """Returns the target as it is now, with credentials that have not expired."""
        with convert_errors("open", self.name):
            return Target(self.table.refresh())

    @property
    def name(self) -> str:
        """The name of the table for messages."""
        return ".".join(self.table.name())

    @cached_property
    def schema(self) -> Any:
        """The schema of the table."""
        return self.table.schema()

    @cached_property
    def file_schema(self) -> Any:
        """The schema of data files, whose names are compatible with Avro."""
        from pyiceberg.schema import sanitize_column_names

        return sanitize_column_names(self.schema)

    @cached_property
    def partitioning(self) -> Partitioning:
        """The division of rows among data files."""
        return Partitioning(self.table.spec(), self.schema)

    @property
    def columns(self) -> pa.Schema:
        """The columns of rows that the table has."""
        return row_schema(self.schema.fields)

    def fields(self, names: Sequence[str]) -> list[Any]:
        """Returns the columns with names of rows. Raises Permanent for a missing one."""
        known = [field.name for field in self.schema.fields]
        found = [find_name(name, known) for name in names]
        missing = [name for name, index in zip(names, found, strict=True) if index < 0]
        if missing:
            raise Permanent(
                f'the table has no column "{missing[0]}"', code="target-schema",
                hint="Start the run again: it was renamed or dropped during the run.",
            )  # fmt: skip
        return [self.schema.fields[index] for index in found]


def create_table(
    access: TableAccess, columns: pa.Schema, key: Sequence[str], config: IcebergSinkConfig
) -> None:
    """Creates a table and its namespace, unless another writer does it first."""
    from pyiceberg.exceptions import TableAlreadyExistsError

    schema = iceberg_schema(columns, key)
    spec = partition_spec(config.partition_by, schema)
    access.prepare_directories()
    with convert_errors("create", access.name):
        access.catalog.create_namespace_if_not_exists(access.identifier[:-1])
        try:
            access.catalog.create_table(
                access.identifier, schema, config.location, spec,
                properties=dict(config.table_properties),
            )  # fmt: skip
        except TableAlreadyExistsError:
            return


def add_columns(access: TableAccess, changes: SchemaChanges) -> None:
    """Adds the missing columns to a table, each of them once, and widens others."""

    def attempt() -> None:
        table = access.require(HINT)
        known = [fold(field.name) for field in table.schema().fields]
        missing = [each for each in changes.missing if fold(each.name) not in known]
        with convert_errors("change", access.name), table.update_schema() as update:
            for change in missing:
                type_ = iceberg_type(pa.field(change.name, change.rows), count(10_000))
                update.add_column((change.name,), type_)
            for change in changes.widened:
                type_ = iceberg_type(pa.field(change.name, change.promoted), count(10_000))
                (field,) = Target(table).fields([change.name])
                update.update_column((field.name,), type_)

    repeat_conflicts(attempt, access.name)


def check_widened(changes: SchemaChanges) -> None:
    """Raises PlanError for a column that Iceberg cannot widen."""
    for change in changes.widened:
        old, new = change.target, change.promoted
        assert old is not None and new is not None
        widens = (
            (old == pa.int32() and new == pa.int64())
            or (old == pa.float32() and new == pa.float64())
            or (pa.types.is_decimal(old) and pa.types.is_decimal(new) and old.scale == new.scale)
        )  # fmt: skip
        if not widens:
            raise PlanError(
                f"Iceberg cannot widen a column: {change}", code="target-schema",
                hint="Cast the column in a transform.",
            )  # fmt: skip


def check_writable(table: Any, name: str) -> None:
    """Raises Permanent for a table that the sink cannot write to."""
    if table.metadata.format_version < 2:
        raise old_format(name)
    if table.metadata.format_version > 2:
        raise Permanent(
            f"cannot write to {name}: PyIceberg does not write version 3 of the format",
            code="unsupported-table", hint="Write to a table of version 2.",
        )  # fmt: skip
    if table.properties.get("write.format.default", "parquet").lower() != "parquet":
        raise Permanent(
            f"cannot write to {name}: its files are not Parquet (write.format.default)",
            code="unsupported-table", hint="Write to a table whose files are Parquet.",
        )  # fmt: skip


def old_format(name: str) -> Permanent:
    """Returns the error of a table of the first version of the format."""
    return Permanent(
        f"{name} has version 1 of the format, in which snapshots have no order",
        code="unsupported-table",
        hint="Set the property format-version of the table to 2.",
    )


def check_partitions_of(table: Any, expected: Sequence[str]) -> None:
    """Raises OptionError if `partition_by` is set, and the table has other partitions."""
    if not expected:
        return
    schema, spec = table.schema(), table.spec()
    wanted = described(partition_spec_or_none(expected, schema), schema)
    found = described(spec, schema)
    if wanted != found:
        names = ", ".join(found) or "no columns"
        raise OptionError.of(
            "partition_by", message=f"the table is partitioned by {names}", code="invalid-option",
            hint="Remove partition_by: it is for new tables.",
        )  # fmt: skip


def partition_spec_or_none(texts: Sequence[str], schema: Any) -> Any:
    """Returns the partitions of the option; none if the table lacks one of the columns."""
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC

    try:
        return partition_spec(texts, schema)
    except ValueError:
        return UNPARTITIONED_PARTITION_SPEC

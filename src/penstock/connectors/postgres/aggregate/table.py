"""The aggregate table: its creation, its comparison with the options, and its first rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.connectors.postgres.aggregate.config import STATE_COLUMN
from penstock.connectors.postgres.aggregate.merge import Merge
from penstock.connectors.postgres.aggregate.triggers import Triggers
from penstock.connectors.postgres.types import DIALECT
from penstock.core.errors import OptionError, Permanent
from penstock.sdk.columns.names import fold
from penstock.sdk.database import Connection, TableName
from penstock.sdk.database.types import declared_type

_EXPECTED = TableName(("penstock_expected",))
_LANDING = """
SELECT col_description(a.attrelid, a.attnum) FROM pg_attribute a
WHERE a.attrelid = to_regclass(\0) AND a.attname = \0 AND NOT a.attisdropped
"""


@dataclass(frozen=True)
class AggregateTable:
    """An aggregate table, in the transaction of a connection."""

    merge: Merge
    connection: Connection

    @property
    def name(self) -> TableName:
        """The name with its schema."""
        return self.merge.table

    def prepare(self, *, create: bool, add_columns: bool) -> None:
        """Creates the table and its triggers. Other triggers than those of the options, as of an
        earlier version of the pipeline, are replaced, and the aggregates are computed anew."""
        triggers = Triggers(self.merge)
        if self._is_maintained(triggers):
            return
        landing = DIALECT.table(self.merge.landing)
        self.connection.execute(f"LOCK TABLE {landing} IN SHARE ROW EXCLUSIVE MODE")
        if self._is_maintained(triggers):
            return
        if self.connection.columns(self.name) is not None:
            self._check_landing()
            self._check_columns(add_columns=add_columns)
        elif create:
            self.connection.execute(self._create_statement())
        else:
            raise missing_table(self.name, f"Run {self._create_statement()}.")
        self._fill(triggers)

    def _is_maintained(self, triggers: Triggers) -> bool:
        is_there = self.connection.columns(self.name) is not None
        return is_there and triggers.are_installed(self.connection)

    def _fill(self, triggers: Triggers) -> None:
        """Computes all aggregates and installs the triggers, while the landing table is locked."""
        landing, table = DIALECT.table(self.merge.landing), DIALECT.table(self.name)
        self.connection.execute(f"DELETE FROM {table}")
        indexes = [(triggers.index(self.name), table, self.merge.place_of_group())]
        if self.merge.extremes:
            place = self.merge.place_of_row(landing)
            indexes.append((triggers.index(self.merge.landing), landing, place))
        for index, of, place in indexes if self.merge.columns.groups else []:
            self.connection.execute(f"DROP INDEX IF EXISTS {DIALECT.table(index)}")
            name = DIALECT.quote(index.name)
            self.connection.execute(f"CREATE INDEX {name} ON {of} (({place}))")
        self.connection.execute("SET LOCAL extra_float_digits = 1")
        self.connection.execute(self.merge.statement((1, landing)))
        triggers.install(self.connection)
        text = DIALECT.table(self.merge.landing).replace("'", "''")
        state = f"{table}.{DIALECT.quote(STATE_COLUMN)}"
        self.connection.execute(f"COMMENT ON COLUMN {state} IS '{text}'")

    def _definitions(self) -> Iterator[tuple[str, str]]:
        for name, type_ in (*self.merge.columns.types(), (STATE_COLUMN, "NUMERIC[]")):
            yield name, f"{DIALECT.quote(name)} {type_}"

    def _create_statement(self, name: TableName | None = None) -> str:
        definitions = ", ".join(definition for _, definition in self._definitions())
        return f"CREATE TABLE {DIALECT.table(name or self.name)} ({definitions})"

    def _check_landing(self) -> None:
        """Raises Permanent if the table is not an aggregate table of this landing table."""
        found = self.connection.query(_LANDING, (DIALECT.table(self.name), STATE_COLUMN))
        if not found:
            raise Permanent(
                f'the table "{self.name}" exists and is not an aggregate table',
                code="not-aggregate-table",
                hint="Set aggregate_table to a table that does not exist, or add the column "
                f"{DIALECT.quote(STATE_COLUMN)} NUMERIC[]: the rows of the table are deleted.",
            )
        (landing,) = found[0]
        if landing not in (None, DIALECT.table(self.merge.landing)):
            raise Permanent(
                f'the table "{self.name}" has the aggregates of {landing}',
                code="not-aggregate-table",
                hint="Set aggregate_table to a table of its own for each landing table.",
            )

    def _check_columns(self, *, add_columns: bool) -> None:
        """Compares the columns with those of the options, and adds missing ones if allowed."""
        self.connection.execute(self._create_statement(_EXPECTED).replace("TABLE", "TEMP TABLE", 1))
        expected = self.connection.columns(_EXPECTED)
        self.connection.execute(f"DROP TABLE {DIALECT.table(_EXPECTED)}")
        found = self.connection.columns(self.name)
        assert expected is not None and found is not None
        definitions = dict(self._definitions())
        for field in expected:
            table = DIALECT.table(self.name)
            if field.name not in found.names:
                statement = f"ALTER TABLE {table} ADD COLUMN {definitions[field.name]}"
                if not add_columns:
                    raise self._other_columns(
                        f'has no column "{field.name}"',
                        f"Set schema_changes: apply, or run {statement}",
                    )
                self.connection.execute(statement)
            elif declared_type(found.field(field.name)) != declared_type(field):
                raise self._other_columns(
                    f'has the column "{field.name}" of the type '
                    f"{declared_type(found.field(field.name))}, expected {declared_type(field)}",
                    f"Set the type, or run DROP TABLE {table}: the aggregates are computed anew",
                )
        names = {*map(fold, expected.names)}
        for field in found:
            if fold(field.name) not in names and not field.nullable:
                raise self._other_columns(
                    f'requires the column "{field.name}"', "Give the column a default value"
                )

    def _other_columns(self, difference: str, hint: str) -> Permanent:
        return Permanent(
            f'the aggregate table "{self.name}" {difference}', code="target-schema",
            hint=f"{hint}.",
        )  # fmt: skip


def missing_table(name: TableName, hint: str) -> OptionError:
    """Returns the error of an aggregate table that does not exist."""
    return OptionError.of(
        "aggregate_table", message=f'there is no table "{name}"', code="unknown-table",
        hint=f"{hint} Or set create: true.",
    )  # fmt: skip

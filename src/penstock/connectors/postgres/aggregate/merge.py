"""SQL that merges changes of landing rows into an aggregate table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.connectors.postgres.aggregate.columns import AggregateValue, Columns
from penstock.connectors.postgres.aggregate.config import STATE_COLUMN
from penstock.connectors.postgres.aggregate.state import ROWS, State
from penstock.connectors.postgres.types import DIALECT
from penstock.sdk.database import TableName

_STATE = DIALECT.quote(STATE_COLUMN)


@dataclass(frozen=True)
class Merge:
    """The statement for an aggregate table and its landing table, both with their schemas.

    Groups are found by a hash of their columns, whose index has no limit of the size of values and
    finds null values. Counts and sums are added to the state of a group. A minimum or a maximum is
    computed from the landing rows of its group if a row with this value, or beyond it, is removed.
    """

    landing: TableName
    table: TableName
    columns: Columns

    @cached_property
    def state(self) -> State:
        """The state of a group."""
        return State.of(self.columns.aggregates)

    @property
    def extremes(self) -> Sequence[AggregateValue]:
        """The minima and maxima."""
        return [each for each in self.columns.aggregates if each.function in ("min", "max")]

    def statement(self, *changes: tuple[int, str]) -> str:
        """Returns the statement for relations of landing rows, with 1 for added ones and -1 for
        removed ones."""
        results = {each.name: self._result(each) for each in self.columns.aggregates}
        updates = ", ".join(f"{DIALECT.quote(name)} = {value}" for name, value in results.items())
        names = [*(group.name for group in self.columns.groups), *results, STATE_COLUMN]
        values = ", ".join([*(f"m.g{n}" for n in self._groups), *results.values(), "m.state"])
        table, same = DIALECT.table(self.table), self._same("t", "m")
        return f"""
WITH changes AS ({" UNION ALL ".join(self._changes(*each) for each in changes)}),
deltas AS ({self._deltas()}),
merged AS MATERIALIZED ({self._merged()}),
removed AS (DELETE FROM {table} AS t USING merged AS m
  WHERE m.found AND m.state[{ROWS}] = 0 AND {same}),
updated AS (UPDATE {table} AS t SET {updates}, {_STATE} = m.state FROM merged AS m
  WHERE m.found AND m.state[{ROWS}] <> 0 AND {same})
INSERT INTO {table} ({DIALECT.quote_all(names)})
SELECT {values} FROM merged AS m WHERE NOT m.found AND m.state[{ROWS}] <> 0
"""

    def place_of_group(self) -> str:
        """Returns the indexed expression of the aggregate table."""
        return _hash([DIALECT.quote(group.name) for group in self.columns.groups])

    def place_of_row(self, row: str) -> str:
        """Returns the indexed expression of a row of the landing table."""
        return _hash(self._keys(row))

    @property
    def _groups(self) -> range:
        return range(1, len(self.columns.groups) + 1)

    def _keys(self, row: str = "r") -> list[str]:
        return [group.value.of(row) for group in self.columns.groups]

    def _changes(self, sign: int, relation: str) -> str:
        values = [f"{sign} AS sign"]
        values += [f"{value} AS g{n}" for n, value in zip(self._groups, self._keys(), strict=True)]
        values += [f"{value.of('r')} AS {name}" for value, name in self.state.inputs.items()]
        for n, extreme in enumerate(self.extremes):
            assert extreme.value is not None
            values.append(f"{extreme.value.of('r')} AS e{n}")
        return f"SELECT {', '.join(values)} FROM {relation} AS r"

    def _deltas(self) -> str:
        groups = [f"g{n}" for n in self._groups]
        values = [*groups, f"{_hash(groups)} AS place", f"{self.state.array()} AS state"]
        for n, extreme in enumerate(self.extremes):
            function = f"{extreme.function}(e{n})"
            values.append(f"{function} FILTER (WHERE sign > 0) AS added{n}")
            values.append(f"{function} FILTER (WHERE sign < 0) AS removed{n}")
        by = ", ".join(groups) or "()"
        return f"SELECT {', '.join(values)} FROM changes GROUP BY {by} HAVING count(*) > 0"

    def _merged(self) -> str:
        values = [f"d.g{n}" for n in self._groups]
        values += ["d.place", f"t.{_STATE} IS NOT NULL AS found"]
        values.append(f"{self.state.total(f't.{_STATE}', 'd.state')} AS state")
        values += [f"{self._extreme(n, each)} AS e{n}" for n, each in enumerate(self.extremes)]
        table = DIALECT.table(self.table)
        return (
            f"SELECT {', '.join(values)} FROM deltas AS d "
            f"LEFT JOIN {table} AS t ON {self._same('t', 'd')}"
        )

    def _extreme(self, n: int, extreme: AggregateValue) -> str:
        assert extreme.value is not None
        is_min = extreme.function == "min"
        known = f"{'least' if is_min else 'greatest'}(t.{DIALECT.quote(extreme.name)}, d.added{n})"
        kept = f"d.removed{n} IS NULL OR d.removed{n} {'>' if is_min else '<'} {known}"
        rows = [f"{self.place_of_row('r')} = d.place"]
        rows += [
            f"{value} IS NOT DISTINCT FROM d.g{number}"
            for number, value in zip(self._groups, self._keys(), strict=True)
        ]
        computed = (
            f"SELECT {extreme.function}({extreme.value.of('r')}) "
            f"FROM {DIALECT.table(self.landing)} AS r WHERE {' AND '.join(rows)}"
        )
        return f"CASE WHEN {kept} THEN {known} ELSE ({computed}) END"

    def _result(self, aggregate: AggregateValue) -> str:
        if aggregate in self.extremes:
            return f"m.e{self.extremes.index(aggregate)}"
        return self.state.result(aggregate, "m.state")

    def _same(self, row: str, group: str) -> str:
        """Returns the condition that a row of the aggregate table is that of a group."""
        names = [f"{row}.{DIALECT.quote(each.name)}" for each in self.columns.groups]
        conditions = [f"{_hash(names)} = {group}.place"]
        conditions += [
            f"{name} IS NOT DISTINCT FROM {group}.g{n}"
            for n, name in zip(self._groups, names, strict=True)
        ]
        return " AND ".join(conditions)


def _hash(values: Sequence[str]) -> str:
    return f"hash_record_extended(ROW({', '.join(values)}), 0)" if values else "0::bigint"

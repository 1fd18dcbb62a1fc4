"""The state of a group: an array of counts and sums, to which changes are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.connectors.postgres.aggregate.columns import (
    FLOATS,
    INTEGERS,
    AggregateValue,
    Value,
)

ROWS = 1
"""The place of the number of rows."""
_SPECIAL = ("NaN", "Infinity", "-Infinity")


@dataclass
class State:
    """The expressions of an array.

    Each one is computed for the changes of a group, which have the columns `sign` and those of
    `inputs`. Sums are exact and finite; NaN and infinity are counted beside them, so that a
    retraction leaves no trace of a value.
    """

    expressions: list[str] = field(default_factory=lambda: ["sum(sign)"])
    inputs: dict[Value, str] = field(default_factory=dict)
    _places: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, aggregates: Sequence[AggregateValue]) -> State:
        """Returns the state of the aggregates that are counts and sums."""
        state = cls()
        for aggregate in aggregates:
            if aggregate.value is not None and aggregate.function in ("sum", "avg", "count"):
                state._add_count(aggregate.value)
                if aggregate.function != "count":
                    state._add_sum(aggregate.value)
        return state

    def result(self, aggregate: AggregateValue, array: str) -> str:
        """Returns the expression of an aggregate from an array."""
        if aggregate.value is None:
            return f"{array}[{ROWS}]::{aggregate.type}"
        column = self.inputs[aggregate.value]
        count = f"{array}[{self._places[column, 'count']}]"
        if aggregate.function == "count":
            return f"{count}::{aggregate.type}"
        total = f"{array}[{self._places[column, 'sum']}]"
        if aggregate.function == "avg":
            total = f"{total} / {count}"
        cases = [f"WHEN {count} = 0 THEN NULL"]
        if (column, "NaN") in self._places:
            nan, plus, minus = (f"{array}[{self._places[column, text]}]" for text in _SPECIAL)
            cases += [
                f"WHEN {nan} <> 0 OR {plus} <> 0 AND {minus} <> 0 THEN 'NaN'",
                f"WHEN {plus} <> 0 THEN 'Infinity'",
                f"WHEN {minus} <> 0 THEN '-Infinity'",
            ]
        return f"(CASE {' '.join(cases)} ELSE {total} END)::{aggregate.type}"

    def _add_count(self, value: Value) -> None:
        column = self.inputs.setdefault(value, f"x{len(self.inputs) + 1}")
        self._add(column, "count", f"sum(sign) FILTER (WHERE {column} IS NOT NULL)")

    def _add_sum(self, value: Value) -> None:
        column = self.inputs[value]
        number = f"{column}::numeric"
        if value.kind in FLOATS:
            number = f"{column}::float8::text::numeric"
        finite = ""
        if value.kind not in INTEGERS:
            special = ", ".join(f"'{text}'" for text in _SPECIAL)
            finite = f" FILTER (WHERE {column} NOT IN ({special}))"
            for text in _SPECIAL:
                self._add(column, text, f"sum(sign) FILTER (WHERE {column} = '{text}')")
        self._add(column, "sum", f"sum(sign * {number}){finite}")

    def _add(self, column: str, name: str, expression: str) -> None:
        if (column, name) not in self._places:
            self.expressions.append(expression)
            self._places[column, name] = len(self.expressions)

    def array(self) -> str:
        """Returns the expression of the array of the changes of a group."""
        items = ", ".join(f"coalesce({each}, 0)::numeric" for each in self.expressions)
        return f"ARRAY[{items}]"

    def total(self, before: str, change: str) -> str:
        """Returns the expression of the array after a change. `before` may be null."""
        places = range(1, len(self.expressions) + 1)
        items = [f"coalesce({before}[{n}], 0) + {change}[{n}]" for n in places]
        return f"ARRAY[{', '.join(items)}]"

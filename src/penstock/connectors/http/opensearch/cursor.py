"""The order of documents by fields, from offset to offset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from penstock.sdk import Permanent

Values = Sequence[Any]
Query = Mapping[str, Any]
_TIMES = ("date", "date_nanos")
_ORDERED = frozenset(
    ["long", "integer", "short", "byte", "unsigned_long", "double", "float", "half_float",
     "keyword", *_TIMES]
)  # fmt: skip
_START = datetime(1970, 1, 1)


class CursorField(NamedTuple):
    """A field with its type in the indexes that have it."""

    name: str
    type: str

    @classmethod
    def of(cls, name: str, types: Sequence[str]) -> CursorField:
        """Returns the field with a type that has its order. Raises Permanent for other types."""
        names = {type_ for type_ in types if type_ != "unmapped"}
        if "date_nanos" in names:
            names -= {"date"}
        if len(names) != 1 or not names <= _ORDERED:
            hint = "Set cursor_columns to fields of numbers, keywords or times."
            if "text" in names:
                hint = (
                    f'Set cursor_columns to its subfield of the type keyword, as "{name}.keyword".'
                )
            raise Permanent(
                f'cannot read in the order of the field "{name}" of the type '
                f"{' and '.join(sorted(names))}", code="cursor-type", hint=hint,
            )  # fmt: skip
        return cls(name, names.pop())

    @property
    def is_time(self) -> bool:
        """Whether the field holds times."""
        return self.type in _TIMES

    def sort(self, direction: str) -> Query:
        """Returns the item of a sort."""
        options = {"order": direction, "unmapped_type": self.type}
        if self.type == "date_nanos":
            # Without `missing: _first` OpenSearch 2 skips shards that have documents of the page.
            # No document that is read lacks the field.
            options |= {"numeric_type": self.type, "missing": "_first"}
        return {self.name: options}

    def compare(self, operator: str, value: Any) -> Query:
        """Returns the condition that the field is `gt`, `gte` or `lte` a value of a sort."""
        if not self.is_time:
            return {"range": {self.name: {operator: value}}}
        return self.compare_time(operator, self._time(value))

    def compare_time(self, operator: str, time: str) -> Query:
        """Returns the condition that the time of the field is `gt`, `gte` or `lte` a time."""
        return {"range": {self.name: {operator: time, "format": "strict_date_optional_time"}}}

    def _time(self, value: int) -> str:
        """Returns the time of a value of a sort: milliseconds or nanoseconds since 1970."""
        units = 1_000_000_000 if self.type == "date_nanos" else 1_000
        seconds, fraction = divmod(value, units)
        try:
            whole = _START + timedelta(seconds=seconds)
        except OverflowError:
            raise Permanent(
                f'the time in the field "{self.name}" is not between the years 1 and 9999',
                code="cursor-type", hint="Correct the document, or exclude it by query.",
            ) from None  # fmt: skip
        digits = len(str(units)) - 1
        return f"{whole.isoformat()}.{fraction:0{digits}d}Z"


class DocumentOrder(NamedTuple):
    """The order of documents by fields, the first one first."""

    fields: tuple[CursorField, ...]

    def sort(self, direction: str = "asc") -> list[Query]:
        """Returns a sort."""
        return [field.sort(direction) for field in self.fields]

    def after(self, values: Values) -> Query:
        """Returns the condition of documents after those with these values."""
        return self._compare("gt", values)

    def until(self, values: Values) -> Query:
        """Returns the condition of documents up to those with these values."""
        return self._compare("lte", values)

    def has_nulls(self) -> Query:
        """Returns the condition of documents that have no place in the order."""
        missing = [
            {"bool": {"must_not": {"exists": {"field": field.name}}}} for field in self.fields
        ]
        return _any_of(missing)

    def _compare(self, operator: str, values: Values) -> Query:
        """Returns the condition that the first different field is `operator` its value."""
        alternatives: list[Query] = []
        equal: list[Query] = []
        for index, (field, value) in enumerate(zip(self.fields, values, strict=True)):
            is_last = index == len(self.fields) - 1
            strict = operator if is_last else {"gt": "gt", "lte": "lt"}[operator]
            alternatives.append(all_of([*equal, field.compare(strict, value)]))
            equal += [field.compare("gte", value), field.compare("lte", value)]
        return _any_of(alternatives)


def all_of(conditions: Sequence[Query]) -> Query:
    """Returns the condition that all conditions hold, without scores."""
    return {"bool": {"filter": [*conditions]}}


def _any_of(conditions: Sequence[Query]) -> Query:
    return {"bool": {"should": [*conditions], "minimum_should_match": 1}}

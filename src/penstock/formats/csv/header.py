"""Headers of CSV files: the fields that are the columns of a schema."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from penstock.core.errors import Permanent, PlanError
from penstock.core.text import nearest, shorten
from penstock.formats.csv.records import Dialect

MissingColumns = Literal["error", "null"]
"""The effect of a declared column that a file lacks: an error, or nulls."""
_UTF16 = re.compile(rb"\0[\x01-\x7f]|[\x01-\x7f]\0")
_DELIMITERS = (",", ";", "\t", "|", ":")


@dataclass(frozen=True)
class Header:
    """The header of a file: its first record."""

    record: bytes
    dialect: Dialect

    @property
    def names(self) -> list[str]:
        """The names without surrounding white space."""
        fields = self.dialect.fields(self.record) or []
        return [text.decode(errors="replace").strip() for text, _ in fields]

    def match(self, schema: pa.Schema, missing: MissingColumns, origin: str) -> list[str]:
        """Returns the column of each field; a field of another name has a name with a NUL.

        Upper and lower case are equal if only one field has such a name. Raises Permanent for a
        header without any column, for a column that two fields have but for case, and for a missing
        column if `missing` is `error` or the column is NOT NULL.
        """
        names = self.names
        matches = match_names(names, schema.names)
        self._check_ambiguous(names, schema.names, matches, origin)
        columns = set(matches.values())
        if len(schema) and not columns:
            raise self._mismatch(schema, origin)
        absent = _absent(columns, schema, missing)
        if absent:
            others = [name for index, name in enumerate(names) if index not in matches]
            raise Permanent(
                f"cannot read {origin}: expected {_noun(absent)} {_listed(absent)} in the header, "
                f"found {_listed(names)}",
                code="missing-column",
                hint=_suggestion(absent, others, schema),
            )
        return [matches.get(index, f"\0{index}") for index in range(len(names))]

    def _check_ambiguous(
        self,
        names: Sequence[str],
        columns: Iterable[str],
        matches: Mapping[int, str],
        origin: str,
    ) -> None:
        for column in columns:
            alike = [name for name in names if _fold(name) == _fold(column)]
            if len(alike) > 1 and column not in matches.values():
                raise Permanent(
                    f'cannot read {origin}: expected one column "{column}" in the header, found '
                    f"{_listed(alike)}",
                    code="ambiguous-column",
                    hint="Declare the column as it is written in the header.",
                )

    def _mismatch(self, schema: pa.Schema, origin: str) -> Permanent:
        text = shorten(self.record.decode(errors="backslashreplace").strip(), 100)
        return Permanent(
            f"cannot read {origin}: expected a header with the columns {_listed(schema.names)}, "
            f'found "{text.encode("unicode_escape").decode()}"',
            code="wrong-header",
            hint=self._advice(schema),
        )

    def _advice(self, schema: pa.Schema) -> str:
        if pair := _UTF16.search(self.record):
            order = "be" if pair[0].startswith(b"\0") else "le"
            return f"Set encoding: utf-16-{order}."
        for delimiter in _DELIMITERS:
            other = replace(self, dialect=replace(self.dialect, delimiter=delimiter))
            if delimiter != self.dialect.delimiter and match_names(other.names, schema.names):
                written = delimiter.encode("unicode_escape").decode()
                return f'Set delimiter: "{written}".'
        if len(self.names) == len(schema):
            return "Set header: false for a file without a header, or declare its columns."
        return "Set delimiter and encoding to those of the file, and declare its columns."


def match_names(names: Sequence[str], columns: Collection[str]) -> dict[int, str]:
    """Returns the columns of a header's names, by index.

    A column without a name of equal case matches a name of other case if there is only one. The
    first of equal names matches.
    """
    matches: dict[int, str] = {}
    for column in columns:
        if column.strip() in names:
            matches[names.index(column.strip())] = column
    for column in [column for column in columns if column not in matches.values()]:
        alike = [
            index
            for index, name in enumerate(names)
            if _fold(name) == _fold(column) and index not in matches
        ]
        if len(alike) == 1:
            matches[alike[0]] = column
    return matches


def check_columns(names: Sequence[str], schema: pa.Schema, missing: MissingColumns) -> None:
    """Raises PlanError for a column of `schema` that is not in the option `columns`."""
    absent = _absent(names, schema, missing)
    if absent:
        raise PlanError(
            f"expected {_noun(absent)} {_listed(absent)} in the option columns, found "
            f"{_listed(names)}",
            code="missing-column",
            hint=_suggestion(absent, [name for name in names if name not in schema.names], schema),
        )


def _absent(names: Collection[str], schema: pa.Schema, missing: MissingColumns) -> list[str]:
    return [
        field.name
        for field in schema
        if field.name not in names and (missing == "error" or not field.nullable)
    ]


def _suggestion(absent: Sequence[str], others: Sequence[str], schema: pa.Schema) -> str:
    """Returns a hint with the nearest of the other names of the header."""
    pairs = [(column, nearest(column, others)) for column in absent]
    similar = [(column, name) for column, name in pairs if name]
    hints = []
    if len(absent) == 1 and similar:
        hints.append(f'did you mean "{similar[0][1]}"?')
    elif similar:
        texts = [f'"{name}" for "{column}"' for column, name in similar]
        hints.append(f"did you mean {', '.join(texts)}?")
    if all(schema.field(column).nullable for column in absent):
        hints.append("For nulls set missing_columns: null.")
    elif not similar:
        hints.append("For nulls remove NOT NULL and set missing_columns: null.")
    return " ".join(hints)


def _noun(absent: Sequence[str]) -> str:
    return "the column" if len(absent) == 1 else "the columns"


def _listed(names: Sequence[str], limit: int = 20) -> str:
    listed = [f'"{shorten(name, 60)}"' for name in names[:limit]]
    more = [f"{len(names) - limit} more"] if len(names) > limit else []
    return ", ".join([*listed, *more])


def _fold(name: str) -> str:
    return name.strip().casefold()

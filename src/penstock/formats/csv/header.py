"""Headers of CSV files: the fields that are the columns of a schema."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from penstock.core.errors import Permanent, PlanError
from penstock.core.text import nearest, shorten
from penstock.formats.csv.records import Dialect
from penstock.sdk.columns.names import AmbiguousName, find_name

MissingColumns = Literal["error", "null"]
"""The effect of a declared column that a file lacks: an error, or nulls."""
_UTF16 = re.compile(rb"\0[\x01-\x7f]|[\x01-\x7f]\0")
_ENCODING_HINT = "Set encoding to that of the file, as in encoding: latin-1."
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

    @property
    def undecodable(self) -> str | None:
        """The first byte that is not UTF-8; None without one."""
        try:
            self.record.decode()
        except UnicodeDecodeError as error:
            return f"byte 0x{self.record[error.start]:02x}"
        return None

    def check_encoding(self) -> None:
        """Raises PlanError for a header that is not UTF-8."""
        if (byte := self.undecodable) is not None:
            raise PlanError(
                f"the header is not UTF-8: {byte}", code="wrong-header", hint=_ENCODING_HINT
            )

    def match(self, schema: pa.Schema, missing: MissingColumns, origin: str) -> list[str]:
        """Returns the column of each field; a field of another name has a name with a NUL.

        Names are matched as in `sdk.columns.names`. Raises Permanent for a header without any
        column, for a column that several fields have, and for a missing column if `missing` is
        `error` or the column is NOT NULL.
        """
        names = self.names
        try:
            matches = match_names(names, schema.names)
        except AmbiguousName as error:
            raise Permanent(
                f'cannot read {origin}: expected one column "{error.column}" in the header, found '
                f"{_listed(error.names)}",
                code="ambiguous-column",
                hint=_ambiguity_hint(error),
            ) from None
        columns = set(matches.values())
        if len(schema) and not columns:
            raise self._mismatch(schema, origin)
        absent = _absent(columns, schema, missing)
        if absent and (byte := self.undecodable) is not None:
            raise Permanent(
                f"cannot read {origin}: expected {_noun(absent)} {_listed(absent)} in the header, "
                f"found a header that is not UTF-8: {byte}",
                code="wrong-header",
                hint=_ENCODING_HINT,
            )
        if absent:
            others = [name for index, name in enumerate(names) if index not in matches]
            raise Permanent(
                f"cannot read {origin}: expected {_noun(absent)} {_listed(absent)} in the header, "
                f"found {_listed(names)}",
                code="missing-column",
                hint=_suggestion(absent, others, schema),
            )
        return [matches.get(index, f"\0{index}") for index in range(len(names))]

    def _has_columns(self, schema: pa.Schema) -> bool:
        try:
            return bool(match_names(self.names, schema.names))
        except AmbiguousName:
            return True

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
        if self.undecodable is not None:
            return _ENCODING_HINT
        for delimiter in _DELIMITERS:
            other = replace(self, dialect=replace(self.dialect, delimiter=delimiter))
            if delimiter != self.dialect.delimiter and other._has_columns(schema):
                written = delimiter.encode("unicode_escape").decode()
                return f'Set delimiter: "{written}".'
        if len(self.names) == len(schema):
            return "Set header: false for a file without a header, or declare its columns."
        return "Set delimiter and encoding to those of the file, and declare its columns."


def match_names(names: Sequence[str], columns: Collection[str]) -> dict[int, str]:
    """Returns the columns among names, by the index of the name. Raises AmbiguousName."""
    found = {column: find_name(column.strip(), names) for column in columns}
    return {index: column for column, index in found.items() if index >= 0}


def _ambiguity_hint(error: AmbiguousName) -> str:
    if len(set(error.names)) == 1:
        return "Set header: false and name the fields in columns, after removing the header."
    return "Declare the column as it is written in the header."


def named_columns(names: Sequence[str], schema: pa.Schema, missing: MissingColumns) -> list[str]:
    """Returns the column of each name in the option `columns`; other names unchanged.

    Raises PlanError for a column of `schema` that is not in the option.
    """
    try:
        matches = match_names(names, schema.names)
    except AmbiguousName as error:
        raise PlanError(f"{error} in the option columns", code="ambiguous-column") from None
    columns = [matches.get(index, name) for index, name in enumerate(names)]
    check_columns(columns, schema, missing)
    return columns


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

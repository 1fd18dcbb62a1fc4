"""Text with columns in it, such as `orders-{country}`, filled in for each row."""

from __future__ import annotations

import string
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from penstock.core.errors import OptionError
from penstock.sdk.kit.named import need_text


class Template(str):
    """A text in which `{column}` stands for the column's value; `{{` and `}}` are braces.

    As the type of an option it refuses a text that cannot be filled in.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(_valid, core_schema.str_schema())

    @cached_property
    def parts(self) -> tuple[tuple[str, str | None], ...]:
        """Pieces of text, each with the column that follows it."""
        return tuple((text, column) for text, column, _, _ in string.Formatter().parse(self))

    @property
    def columns(self) -> frozenset[str]:
        """The columns that are filled in."""
        return frozenset(column for _, column in self.parts if column is not None)

    @property
    def constant(self) -> str | None:
        """The text, if it is the same for all rows."""
        return None if self.columns else "".join(text for text, _ in self.parts)

    def mistakes(self, columns: pa.Schema, *option: str | int) -> Iterator[OptionError]:
        """The columns of this text, as the value of `option`, that are missing or have no text."""
        for name in sorted(self.columns):
            yield from need_text(name, columns, *option)

    def fill(self, rows: pa.RecordBatch) -> list[str | None]:
        """The text of each row; None where one of its columns is null."""
        if self.constant is not None:
            return [self.constant] * rows.num_rows
        pieces: list[Any] = []
        for text, column in self.parts:
            pieces.append(text)
            if column is not None:
                pieces.append(as_text(rows.column(column)))
        return list(pc.binary_join_element_wise(*pieces, "").to_pylist())


def as_text(column: pa.Array) -> pa.Array:
    """Single values as text, as `CAST(... AS STRING)` gives it."""
    return column.cast(pa.string())


def _valid(text: str) -> Template:
    try:
        names = [column for _, column, _, _ in string.Formatter().parse(text)]
        extras = [bool(spec or how) for _, _, spec, how in string.Formatter().parse(text)]
    except ValueError:
        raise ValueError(
            "expected {column} with both braces ({{ and }} stand for braces)"
        ) from None
    if any(extras) or any(name == "" for name in names):
        raise ValueError("expected {column}, the name of a column in braces")
    return Template(text)

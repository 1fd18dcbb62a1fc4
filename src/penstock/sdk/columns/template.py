"""Templates with columns, such as `orders-{country}`, rendered for each row."""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from penstock.core.errors import OptionError
from penstock.sdk.columns.checks import check_text_column
from penstock.sdk.columns.times import has_iso_text, iso_text


class Template(str):
    """A text in which `{column}` stands for the column's value; `{{` and `}}` are braces.

    As the type of an option it validates the syntax.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def check(text: str) -> Template:
            _check_syntax(text)
            return cls(text)

        return core_schema.no_info_after_validator_function(check, core_schema.str_schema())

    @cached_property
    def parts(self) -> tuple[tuple[str, str | None], ...]:
        """The literal texts, each with the column that follows."""
        return tuple((text, column) for text, column, _, _ in string.Formatter().parse(self))

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the template."""
        return frozenset(column for _, column in self.parts if column is not None)

    @property
    def constant(self) -> str | None:
        """The text, if it is the same for all rows."""
        return None if self.columns else "".join(text for text, _ in self.parts)

    def check(self, columns: pa.Schema, *option: str | int) -> Iterator[OptionError]:
        """Yields an error for each column that is missing or has a nested type.

        `option` is the path of the option whose value is this template.
        """
        for name in sorted(self.columns):
            yield from check_text_column(name, columns, *option)

    def render(self, rows: pa.RecordBatch) -> list[str | None]:
        """Returns the text of each row; None if one of its columns is null."""
        if self.constant is not None:
            return [self.constant] * rows.num_rows
        texts: list[Any] = []
        for text, column in self.parts:
            texts.append(text)
            if column is not None:
                texts.append(as_text(rows.column(column)))
        return list(pc.binary_join_element_wise(*texts, "").to_pylist())


class KeyTemplate(Template):
    """The template of a key. A constant equal to a column's name is an error.

    `key: user` is the text `user`, and `key: "{user}"` is the value of the column.
    """

    def check(self, columns: pa.Schema, *option: str | int) -> Iterator[OptionError]:
        yield from super().check(columns, *option)
        if self.constant is not None and self.constant in columns.names:
            yield OptionError.of(
                *option,
                message=f'expected a template, found the name of the column "{self.constant}"',
                code="column-name",
                hint=f'Write "{{{self.constant}}}" for the value of the column.',
            )


def check_templates(
    templates: Iterable[tuple[tuple[str | int, ...], Template]], columns: pa.Schema
) -> list[OptionError]:
    """Returns the errors of templates, each with the path of its option."""
    return [error for option, template in templates for error in template.check(columns, *option)]


def as_text(column: pa.Array) -> pa.Array:
    """Converts a column to text, with times as in JSON: `2024-01-02T12:00:00Z`."""
    return iso_text(column) if has_iso_text(column.type) else column.cast(pa.string())


def _check_syntax(text: str) -> None:
    try:
        names = [column for _, column, _, _ in string.Formatter().parse(text)]
        extras = [
            bool(spec or conversion) for _, _, spec, conversion in string.Formatter().parse(text)
        ]
    except ValueError:
        raise ValueError("expected {column} with both braces; write {{ and }} for braces") from None
    if any(extras) or any(name == "" for name in names):
        raise ValueError("expected {column}, the name of a column in braces")

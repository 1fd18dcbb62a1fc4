"""Names of tables in outside databases."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.core.errors import PlanError
from penstock.core.names import quote_standard_name
from penstock.core.text import did_you_mean, nearest

_PART = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^."`\s][^."`]*)')

_PLAIN = re.compile(r'[^."`\s](?:[^."`]*[^."`\s])?')


@dataclass(frozen=True)
class TableName:
    """The name of a table, qualified by a schema or a catalog if `parts` has several names."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parses a name such as `orders`, `public.orders` or `"My Schema"."Orders"`.

        Raises ValueError.
        """
        if "\0" in text:
            raise ValueError("expected the name of a table without NUL")
        parts, position = [], 0
        while True:
            match = _PART.match(text, position)
            if match is None:
                raise ValueError("expected the name of a table, such as orders or public.orders")
            double, backtick, plain = match.groups()
            parts.append(
                plain.strip()
                if plain
                else double.replace('""', '"')
                if double
                else backtick.replace("``", "`")
            )
            position = match.end()
            if position == len(text):
                return cls(tuple(parts))
            if text[position] != ".":
                raise ValueError(
                    f'expected a dot after "{parts[-1]}"; write a name with quotes as "a""b"'
                )
            position += 1

    @classmethod
    def of(cls, schema: str | None, name: str) -> TableName:
        """Returns the name of a table in a schema; None is the schema that is used by default."""
        return cls((name,) if schema is None else (schema, name))

    @property
    def name(self) -> str:
        """The name without its qualifiers."""
        return self.parts[-1]

    def sibling(self, name: str) -> TableName:
        """Returns the name of another table with the same qualifiers."""
        return TableName((*self.parts[:-1], name))

    def __str__(self) -> str:
        """Returns the name as `parse` reads it."""
        return ".".join(
            part if _PLAIN.fullmatch(part) else quote_standard_name(part) for part in self.parts
        )


def invalid_name(name: str, reason: str) -> PlanError:
    """Returns the error of a name of a table or a column that a system does not have."""
    return PlanError(
        f'the name "{name}" is not valid: {reason}', code="invalid-name",
        hint="Rename the column in a transform, or choose another name for the table.",
    )  # fmt: skip


def check_no_nul(name: str, system: str) -> None:
    """Raises PlanError for a name with NUL, which ends a text in many systems."""
    if "\0" in name:
        raise invalid_name(name.replace("\0", "\\0"), f"a name of {system} has no NUL")


def did_you_mean_table(table: TableName, tables: Iterable[TableName]) -> str | None:
    """Returns a hint with the nearest table, by the whole name or else by the unqualified name."""
    names = [str(each) for each in tables]
    return did_you_mean(str(table) if nearest(str(table), names) else table.name, names)

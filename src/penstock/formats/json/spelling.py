"""Keys of JSON objects that differ from the names of columns only by case."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.type_names import is_list


def respell(schema: pa.Schema, rows: pa.RecordBatch, text: memoryview | bytes) -> pa.Schema | None:
    """Returns a schema with the spelling of the keys in a text; None if it is that of the columns.

    `rows` are those of the text, read with the names of the columns. Raises ValueError if a name is
    spelled in several ways.
    """
    values: Counter[str] = Counter()
    for field in schema:
        values.update(dict(_null_names(field, rows.column(field.name))))
    if not values:
        return None
    keys = _Keys(bytes(text))
    spellings = {name: keys.spelling(name, count) for name, count in values.items()}
    if all(name == spelling for name, spelling in spellings.items()):
        return None
    return pa.schema([_respell(field, spellings) for field in schema])


def _null_names(field: pa.Field, array: Any) -> Iterator[tuple[str, int]]:
    """Yields the names of a column and its fields that have nulls, with their other values."""
    if array.null_count:
        yield field.name, len(array) - array.null_count
    yield from _inner_null_names(field.type, array)


def _inner_null_names(type_: pa.DataType, array: Any) -> Iterator[tuple[str, int]]:
    if pa.types.is_struct(type_):
        for index, inner in enumerate(type_):
            yield from _null_names(inner, array.field(index))
    elif is_list(type_):
        yield from _inner_null_names(type_.value_type, array.values)
    elif pa.types.is_map(type_):
        yield from _inner_null_names(type_.item_type, array.items)


class _Keys:
    """The keys of objects in a text."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    @cached_property
    def _lower(self) -> bytes:
        return self.text.lower()

    @cached_property
    def _unicode(self) -> str:
        return self.text.decode(errors="replace")

    @cached_property
    def _lower_unicode(self) -> str:
        return self._unicode.lower()

    def spelling(self, name: str, count: int) -> str:
        """Returns the only spelling of a name. Raises ValueError for several.

        The text has the name at least `count` times.
        """
        key = json.dumps(name, ensure_ascii=False)
        if name.isascii():
            alike = self._lower.count(key.lower().encode())
            same = alike == count or alike == self.text.count(key.encode())
        else:
            same = self._lower_unicode.count(key.lower()) == self._unicode.count(key)
        if same:
            return name
        pattern = re.compile(re.escape(key) + r"(?=[ \t\r\n]*:)", re.IGNORECASE)
        found = {match for match in pattern.findall(self._unicode) if match.lower() == key.lower()}
        if len(found) > 1:
            raise ValueError(f'several spellings of "{name}"')
        return str(json.loads(found.pop())) if found else name


def _respell(field: pa.Field, spellings: dict[str, str]) -> pa.Field:
    name = spellings.get(field.name, field.name)
    return pa.field(name, _respell_type(field.type, spellings), field.nullable)


def _respell_type(type_: pa.DataType, spellings: dict[str, str]) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([_respell(field, spellings) for field in type_])
    if is_list(type_):
        return pa.list_(_respell_type(type_.value_type, spellings))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, _respell_type(type_.item_type, spellings))
    return type_

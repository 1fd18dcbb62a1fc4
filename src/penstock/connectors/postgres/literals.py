"""Texts of arrays, rows and ranges."""

from __future__ import annotations

import re
from typing import Any

from penstock.sdk.database.texts import JsonText

_ARRAY_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)|([{},])', re.DOTALL)


def parse_array(text: str) -> list[Any]:
    """Parses the text of an array, such as `{1,NULL,"a b"}`, whose items may be JSON.

    Raises ValueError.

    Source: https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
    """
    root: list[Any] = []
    nesting, position = [root], 0
    while position < len(text):
        match = _ARRAY_TOKEN.match(text, position)
        if match is None:
            raise ValueError("expected an array")
        quoted, plain, mark = match.groups()
        position = match.end()
        if mark == "{":
            nesting[-1].append([])
            nesting.append(nesting[-1][-1])
        elif mark == "}":
            nesting.pop()
        elif plain is not None:
            nesting[-1].append(None if plain == "NULL" else JsonText(plain))
        elif mark is None:
            nesting[-1].append(JsonText(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)))
    if len(nesting) != 1 or len(root) != 1 or not isinstance(root[0], list):
        raise ValueError("expected an array")
    return root[0]


_ROW_FIELD = re.compile(r'((?:"(?:[^"\\]|\\.|"")*"|\\.|[^,()"\\])*)([,)])', re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.|"")*)"', re.DOTALL)
_BOUND = re.compile(r'"(?:[^"\\]|\\.|"")*"|[^,()\[\]{}"]+', re.DOTALL)


def parse_row(text: str) -> list[str | None]:
    """Parses the text of a row, such as `(1,"a b",)`, of which a column is null. Raises ValueError.

    Source: https://www.postgresql.org/docs/current/rowtypes.html#ROWTYPES-IO-SYNTAX
    """
    text = text.strip()
    values: list[str | None] = []
    position = 1
    while match := _ROW_FIELD.match(text, position):
        values.append(_unquoted(match[1]) if match[1] else None)
        position = match.end()
        if match[2] == ")" and position == len(text) and text.startswith("("):
            return values
    raise ValueError("expected a row")


def bounds(text: str) -> list[str]:
    """Returns the bounds in the text of a range or a multirange, such as `[1,5)`."""
    return [_unquoted(bound) for bound in _BOUND.findall(text)]


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", _QUOTED.sub(_content, text), flags=re.DOTALL)


def _content(quoted: re.Match[str]) -> str:
    return quoted[1].replace('""', '"')

"""The functions of JSON texts that DataFusion's extension `datafusion-functions-json` has.

`json_get(text, key, ...)` and its siblings have any number of keys, and `->` and `->>` are
operators. DataFusion calls functions of two texts here: the JSON text, and its keys in one text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from datafusion import SessionContext

_SEPARATOR = "\x1f"
_MISSING = object()
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|->>|->|[A-Za-z_]\w*|\d[\w.]*|\s+|.",
    re.DOTALL,
)


def _find(text: str | None, keys: str) -> Any:
    """Returns the JSON value below the keys, or `_MISSING`."""
    if text is None:
        return _MISSING
    try:
        value = json.loads(text)
    except ValueError:
        return _MISSING
    for key in keys.split(_SEPARATOR) if keys else ():
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return _MISSING
    return value


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _as_text(value: Any) -> str | None:
    return None if value is None else value if isinstance(value, str) else _json_text(value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_RESULTS: dict[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "json_get": (pa.string(), _as_text),
    "json_as_text": (pa.string(), _as_text),
    "json_get_json": (pa.string(), _json_text),
    "json_get_str": (pa.string(), lambda value: value if isinstance(value, str) else None),
    "json_get_int": (pa.int64(), lambda value: value if _is_integer(value) else None),
    "json_get_float": (
        pa.float64(),
        lambda value: float(value) if _is_integer(value) or isinstance(value, float) else None,
    ),
    "json_get_bool": (pa.bool_(), lambda value: value if isinstance(value, bool) else None),
    "json_get_array": (
        pa.list_(pa.string()),
        lambda value: [_json_text(each) for each in value] if isinstance(value, list) else None,
    ),
    "json_length": (
        pa.uint64(), lambda value: len(value) if isinstance(value, dict | list) else None,
    ),
    "json_object_keys": (
        pa.list_(pa.string()), lambda value: list(value) if isinstance(value, dict) else None,
    ),
}  # fmt: skip
_CONTAINS = "json_contains"
_SYNONYMS = {"json_keys": "json_object_keys"}
NAMES = frozenset({*_RESULTS, _CONTAINS, *_SYNONYMS})
"""The names of the functions."""


def register_json_functions(context: SessionContext) -> None:
    """Registers the functions in a session."""
    from datafusion import udf

    def column(convert: Callable[[Any], Any], type_: pa.DataType) -> Callable[..., pa.Array]:
        def call(texts: pa.Array, keys: pa.Array) -> pa.Array:
            found = map(_find, texts.to_pylist(), keys.to_pylist())
            values = [None if value is _MISSING else convert(value) for value in found]
            return pa.array(values, type_)

        return call

    def contains(texts: pa.Array, keys: pa.Array) -> pa.Array:
        found = map(_find, texts.to_pylist(), keys.to_pylist())
        return pa.array([value is not _MISSING for value in found], pa.bool_())

    arguments = [pa.string(), pa.string()]
    for name, (type_, convert) in _RESULTS.items():
        context.register_udf(
            udf(column(convert, type_), arguments, type_, "immutable", f"{name}_at")
        )
    context.register_udf(udf(contains, arguments, pa.bool_(), "immutable", f"{_CONTAINS}_at"))


def translate_json(query: str) -> str:
    """Returns a query with functions of two texts in place of the functions of JSON."""
    if "->" not in query and "json_" not in query.lower():
        return query
    return _translate_calls(_translate_operators(_TOKEN.findall(query)))


_INNER = r"((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*?)"
_CAST = re.compile(rf'arrow_cast\({_INNER},Utf8\("Utf8"\)\)')
_KEYS = re.compile(rf'concat_ws\(Utf8\("{_SEPARATOR}"\),{_INNER}\)')
_NAME = re.compile(r"\b(json_\w+)_at\(")


def original_name(column: str) -> str:
    """Returns the name of a column as DataFusion makes it of the query before its translation."""
    if "_at(" not in column:
        return column
    previous = ""
    while previous != column:
        previous, column = column, _CAST.sub(r"\1", column)
    return _NAME.sub(r"\1(", _KEYS.sub(r"\1", column).replace(',Utf8("")', ""))


def _translate_operators(tokens: list[str]) -> list[str]:
    """Returns tokens with calls in place of `->` and `->>`."""
    while True:
        index = next((i for i, token in enumerate(tokens) if token in {"->", "->>"}), None)
        if index is None:
            return tokens
        start, end = _operand_before(tokens, index), _operand_after(tokens, index)
        if start is None or end is None:
            return tokens
        name = "json_get" if tokens[index] == "->" else "json_as_text"
        left, right = tokens[start:index], tokens[index + 1 : end]
        tokens = [*tokens[:start], name, "(", *left, ",", *right, ")", *tokens[end:]]


def _operand_before(tokens: Sequence[str], index: int) -> int | None:
    """Returns the start of the operand that ends before a token."""
    position = index - 1
    while position >= 0 and tokens[position].isspace():
        position -= 1
    if position < 0:
        return None
    while True:
        if tokens[position] in {")", "]"}:
            depth = 0
            while position >= 0:
                depth += (tokens[position] in {")", "]"}) - (tokens[position] in {"(", "["})
                if depth == 0:
                    break
                position -= 1
        before = tokens[position - 1] if position > 0 else ""
        if tokens[position] in {"(", "["} and re.match(r"[A-Za-z_\")\]]", before):
            position -= 1
        elif before == ".":
            position -= 2
        else:
            return max(position, 0)


def _operand_after(tokens: Sequence[str], index: int) -> int | None:
    """Returns the end of the operand that starts after a token."""
    position = index + 1
    while position < len(tokens) and tokens[position].isspace():
        position += 1
    if position >= len(tokens):
        return None
    if tokens[position] == "(":
        return _closing(tokens, position) + 1
    if position + 1 < len(tokens) and tokens[position + 1] == "(":
        return _closing(tokens, position + 1) + 1
    return position + 1


def _closing(tokens: Sequence[str], opening: int) -> int:
    depth = 0
    for position in range(opening, len(tokens)):
        depth += (tokens[position] == "(") - (tokens[position] == ")")
        if depth == 0:
            return position
    return len(tokens) - 1


def _translate_calls(tokens: Sequence[str]) -> str:
    text, position = "", 0
    while position < len(tokens):
        name = tokens[position].lower()
        opening = position + 1
        while opening < len(tokens) and tokens[opening].isspace():
            opening += 1
        if name in NAMES and opening < len(tokens) and tokens[opening] == "(":
            end = _closing(tokens, opening)
            first, *keys = _arguments(tokens[opening + 1 : end])
            path = ", ".join(f"arrow_cast({key}, 'Utf8')" for key in keys)
            path = f"concat_ws('{_SEPARATOR}', {path})" if keys else "''"
            text += f"{_SYNONYMS.get(name, name)}_at(arrow_cast({first}, 'Utf8'), {path})"
            position = end + 1
        else:
            text += tokens[position]
            position += 1
    return text


def _arguments(tokens: Sequence[str]) -> list[str]:
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in {"(", "["}) - (token in {")", "]"})
        if token == "," and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return [_translate_calls(part).strip() for part in parts]

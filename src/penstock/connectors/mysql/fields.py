"""Types of the columns of a result, as MySQL sends them."""

from __future__ import annotations

from typing import Any

_BINARY_CHARSET = 63
_UNSIGNED, _ENUM, _SET = 32, 256, 2048
_INTEGERS = {1: "tinyint", 2: "smallint", 3: "int", 8: "bigint", 9: "mediumint"}
_OTHERS = {
    4: "float", 5: "double", 7: "timestamp", 10: "date", 11: "time", 12: "datetime", 13: "year",
    245: "json", 255: "geometry",
}  # fmt: skip


def declared_name(field: Any) -> str:
    """Returns the declared type of a column of a result."""
    code = field.type_code
    if code in _INTEGERS:
        unsigned = " unsigned" if field.flags & _UNSIGNED else ""
        size = "(1)" if code == 1 and field.length == 1 else ""
        return f"{_INTEGERS[code]}{size}{unsigned}"
    if code in _OTHERS:
        return _OTHERS[code]
    if code == 246:
        signs = (field.scale > 0) + (not field.flags & _UNSIGNED)
        return f"decimal({field.length - signs},{field.scale})"
    if code == 16:
        return f"bit({field.length})"
    if field.flags & (_ENUM | _SET):
        return "enum" if field.flags & _ENUM else "set"
    return "longtext" if field.charsetnr != _BINARY_CHARSET or code == 6 else "longblob"

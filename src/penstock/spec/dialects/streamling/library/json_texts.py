"""Functions of JSON texts, with the meaning of Flink. Paths have keys and indexes only."""

from __future__ import annotations

import json
import re
from typing import Any

_STEP = re.compile(r"""\.([A-Za-z_$][\w$-]*)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")
_MISSING = object()
_INVALID = object()


def quote(text: str | None) -> str | None:
    """Returns a text as a JSON string."""
    return None if text is None else _dumped(text)


def unquote(text: str | None) -> str | None:
    """Returns the text of a JSON string; another text as it is."""
    value = _parsed(text)
    return value if isinstance(value, str) else text


def compact(text: str | None) -> str | None:
    """Returns a JSON text without blanks; null for a blank text. Raises ValueError."""
    if text is None or not text.strip():
        return None
    value = _parsed(text)
    if value is _INVALID:
        raise ValueError("the text is not valid JSON")
    return _dumped(value)


def try_compact(text: str | None) -> str | None:
    """Returns a JSON text without blanks; null for another text."""
    value = _parsed(text)
    return None if value is _INVALID else _dumped(value)


def is_json(text: str | None, kind: str | None) -> bool:
    """Returns whether a text is JSON: of any kind for VALUE, or OBJECT, ARRAY or SCALAR."""
    value = _parsed(text)
    if value is _INVALID:
        return False
    found = "OBJECT" if isinstance(value, dict) else "ARRAY" if isinstance(value, list) else None
    return (kind or "VALUE").upper() in ("VALUE", found or "SCALAR")


def exists(text: str | None, path: str | None, on_error: str | None) -> bool | None:
    """Returns whether a path exists. For an invalid text the result is the one of `on_error`."""
    if text is None or path is None:
        return None
    value = _parsed(text)
    if value is not _INVALID:
        return _found(value, path) is not _MISSING
    behavior = (on_error or "FALSE").upper().removesuffix(" ON ERROR")
    if behavior == "ERROR":
        raise ValueError("the text is not valid JSON")
    return {"TRUE": True, "UNKNOWN": None}.get(behavior, False)


def value(
    text: str | None, path: str | None, on_empty: str | None, empty_default: str | None,
    on_error: str | None, error_default: str | None,
) -> str | None:  # fmt: skip
    """Returns the scalar at a path as a text. An object, an array, a null and a gap are empty."""
    if text is None or path is None:
        return None
    parsed = _parsed(text)
    if parsed is _INVALID:
        return _otherwise(on_error, error_default, "the text is not valid JSON")
    found = _found(parsed, path)
    if found is _MISSING or found is None or isinstance(found, dict | list):
        return _otherwise(on_empty, empty_default, f"the path {path} has no scalar")
    return found if isinstance(found, str) else _dumped(found)


def query(
    text: str | None, path: str | None, wrapper: str | None, on_empty: str | None,
    on_error: str | None,
) -> str | None:  # fmt: skip
    """Returns the object or array at a path as JSON. A wrapper makes arrays of other values."""
    if text is None or path is None:
        return None
    parsed = _parsed(text)
    if parsed is _INVALID:
        return _otherwise(on_error, None, "the text is not valid JSON")
    found = _found(parsed, path)
    if found is _MISSING:
        return _otherwise(on_empty, None, f"the path {path} does not exist")
    words = (wrapper or "").upper().split()
    is_nested = isinstance(found, dict | list)
    if "WITH" in words and ("CONDITIONAL" not in words or not is_nested):
        return _dumped([found])
    if is_nested:
        return _dumped(found)
    return _otherwise(on_error, None, f"the path {path} has neither an object nor an array")


def array(items: list[str | None], absent_on_null: bool) -> str:
    """Returns a JSON array of items, each as `{"v": ITEM}`."""
    values = [_item(item) for item in items]
    return _dumped([each for each in values if each is not None or not absent_on_null])


def object_(keys: list[str | None], items: list[str | None], absent_on_null: bool) -> str:
    """Returns a JSON object of keys and items, each item as `{"v": ITEM}`."""
    found: dict[str, Any] = {}
    for key, item in zip(keys, items, strict=True):
        if key is None:
            raise ValueError("a key of a JSON object is null")
        value = _item(item)
        if value is not None or not absent_on_null:
            found[key] = value
    return _dumped(found)


def _item(text: str | None) -> Any:
    """Returns an item. A text that has an object or an array is this object or array."""
    value = None if text is None else json.loads(text).get("v")
    nested = _parsed(value) if isinstance(value, str) else _INVALID
    return nested if isinstance(nested, dict | list) else value


def _parsed(text: str | None) -> Any:
    try:
        return _INVALID if text is None else json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _INVALID


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _found(value: Any, path: str) -> Any:
    """Returns the value at a path; `_MISSING` without one. Raises ValueError for another path."""
    path = re.sub(r"^\s*(?:lax|strict)\s+", "", path).strip()
    if not path.startswith("$"):
        raise ValueError(f"invalid JSON path: {path}")
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(f"invalid JSON path: {path}")
        position = step.end()
        key = next((each for each in (step[1], step[3], step[4]) if each is not None), None)
        if key is not None:
            value = value.get(key, _MISSING) if isinstance(value, dict) else _MISSING
        else:
            index = int(step[2])
            is_item = isinstance(value, list) and index < len(value)
            value = value[index] if is_item else _MISSING
    return value


def _otherwise(behavior: str | None, default: str | None, problem: str) -> str | None:
    words = (behavior or "NULL").upper().split()
    if words[:1] == ["ERROR"]:
        raise ValueError(problem)
    if words[:2] == ["EMPTY", "ARRAY"]:
        return "[]"
    if words[:2] == ["EMPTY", "OBJECT"]:
        return "{}"
    return default if words[:1] == ["DEFAULT"] else None

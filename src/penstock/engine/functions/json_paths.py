"""The function `json_path_values` of SQL: JSONPath (RFC 9535) with several values."""

from __future__ import annotations

import json
from functools import lru_cache

import jsonpath


def find_values(text: str, path: str) -> list[str] | None:
    """Returns the JSON texts of all values at a path; None for a text that is not JSON."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return [
        json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        for value in _compiled(path).findall(document)
    ]


@lru_cache(maxsize=256)
def _compiled(path: str) -> jsonpath.CompoundJSONPath | jsonpath.JSONPath:
    return jsonpath.compile(path)

"""Paths of JSON values."""

from __future__ import annotations

import re
from collections.abc import Sequence

FIND_VALUES = "json_path_values"
"""The function `f(text, path)` that returns the JSON texts of all values at a path."""
PATH_FUNCTIONS = ("extract_json", "extract_json_string", "get_first_json_object")
"""Functions of a JSON text and a path."""
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_ONE_VALUE = re.compile(r"\$(\.[A-Za-z_]\w*|\[\d+\]|\['[^'\\]+'\])*\Z")


def path_of(steps: Sequence[str | int]) -> str:
    """Returns the path of keys and indexes: `$.a[0]['two words']`."""
    parts = ["$"]
    for step in steps:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif _NAME.match(step):
            parts.append(f".{step}")
        else:
            parts.append(f"['{step}']")
    return "".join(parts)


def is_path_of_one_value(path: str) -> bool:
    """Returns whether a path has keys and indexes only, which Spark can evaluate."""
    return _ONE_VALUE.match(path) is not None


def path_problem(path: str) -> str | None:
    """Returns the reason that a text is not a JSONPath (RFC 9535), or None."""
    from jsonpath import JSONPathError, compile

    if not path.startswith("$"):
        return "expected $ at the beginning"
    try:
        compile(path)
    except JSONPathError as error:
        return str(error).partition("\n")[0]
    return None


def json_text(path: str) -> tuple[str, str]:
    """Returns the text before and after a JSON text that gives the JSON text of a value in it.

    `path` is a literal or an expression.
    """
    return "to_json(try_variant_get(try_parse_json(", f"), {path}, 'variant'))"

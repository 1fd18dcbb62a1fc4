"""Paths of JSON values."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = re.compile(r"[A-Za-z_]\w*\Z")


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


def json_text(path: str) -> tuple[str, str]:
    """Returns the text before and after a JSON text that gives the JSON text of a value in it.

    `path` is a literal or an expression.
    """
    return "to_json(try_variant_get(try_parse_json(", f"), {path}, 'variant'))"

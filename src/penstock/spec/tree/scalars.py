"""Values of plain scalars by the core schema of YAML 1.2. Dates are text."""

from __future__ import annotations

import re

_INT = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_INF = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z")
_WORDS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
MAX_NUMBER_LENGTH = 400


def resolve(text: str) -> str | int | float | bool | None:
    """Returns the value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > MAX_NUMBER_LENGTH:
        return text
    if _INT.match(text):
        return int(text)
    if _OCTAL.match(text):
        return int(text, 0)
    if _HEX.match(text):
        return int(text, 0)
    if _FLOAT.match(text):
        return float(text)
    if _INF.match(text):
        return float("-inf" if text.startswith("-") else "inf")
    if text in {".nan", ".NaN", ".NAN"}:
        return float("nan")
    return text

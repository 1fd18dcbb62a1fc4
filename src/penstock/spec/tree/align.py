"""Alignment of the text of a scalar with its YAML source, character by character."""

from __future__ import annotations

import re

_BLANK = " \t\r\n"
_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^\r\n])")
_BREAK = re.compile(r"\r\n?|\n")
_CONTINUED = re.compile(r"\\\r?\n[ \t]*")


def align(value: str, text: str, start: int, end: int) -> list[int]:
    """Returns the index in `text[start:end]` of each character of `value` and of its end.

    Words are the same in both. Blanks around a line end differ (indentation, folding). Quotes and
    escapes are in `text` only.
    """
    quote = text[start : start + 1] if text[start : start + 1] in {"'", '"'} else ""
    position = start + 1 if quote else start
    indexes: list[int] = []
    if not quote and value[:1] and value[0] not in _BLANK:
        position = _skip_blanks(text, position, end)
    elif quote != '"' and value and value[0] in _BLANK:
        position = _skip_indentation(value, text, position, end)
    while len(indexes) < len(value) and position < end:
        if quote == '"' and (continued := _CONTINUED.match(text, position)):
            position = continued.end()
        elif quote == '"' and (escape := _ESCAPE.match(text, position)):
            indexes.append(position)
            position = escape.end()
        elif quote == "'" and text.startswith("''", position):
            indexes.append(position)
            position += 2
        elif text[position] in _BLANK:
            position = _align_blanks(value, text, position, end, indexes, quote == '"')
        else:
            indexes.append(position)
            position += 1
    while len(indexes) <= len(value):
        indexes.append(min(position, max(end - 1, start)))
    return indexes


def _skip_blanks(text: str, position: int, end: int) -> int:
    while position < end and text[position] in _BLANK:
        position += 1
    return position


def _skip_indentation(value: str, text: str, position: int, end: int) -> int:
    """Returns the start of a value that starts with blanks, after the indentation."""
    blanks = len(value) - len(value.lstrip(_BLANK))
    return (
        max(position, _skip_blanks(text, position, end) - blanks)
        if value.strip(_BLANK)
        else position
    )


def _align_blanks(
    value: str, text: str, position: int, end: int, indexes: list[int], escapes: bool
) -> int:
    """Aligns a run of blanks of `text`, and returns its end.

    With `escapes` further blanks of `value` may be escapes after the run.
    """
    stop = _skip_blanks(text, position, end)
    count = len(indexes)
    blanks = 0
    while count + blanks < len(value) and value[count + blanks] in _BLANK:
        blanks += 1
    breaks = len(_BREAK.findall(text, position, stop))
    if escapes and breaks:
        blanks = min(blanks, max(breaks - 1, 1))
    if not breaks:
        blanks = min(blanks, stop - position)
        indexes.extend(range(position, position + blanks))
        return stop if blanks else max(stop, position + 1)
    indexes.extend(max(position, stop - distance) for distance in range(blanks, 0, -1))
    return max(stop, position + 1)

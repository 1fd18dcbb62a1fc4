"""Where each character of a scalar's text stands in the YAML that it was written in."""

from __future__ import annotations

import re

_BLANK = " \t\r\n"
_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^\r\n])")
_CONTINUED = re.compile(r"\\\r?\n[ \t]*")


def align(value: str, text: str, start: int, end: int) -> list[int]:
    """For each character of `value` and for its end, the index in `text[start:end]`.

    Words are the same in both; runs of blanks that contain a line end are not (indentation,
    folding), and quotes and escapes stand in `text` only.
    """
    quote = text[start : start + 1] if text[start : start + 1] in {"'", '"'} else ""
    here = start + 1 if quote else start
    places: list[int] = []
    if not quote and value[:1] and value[0] not in _BLANK:
        here = _skip(text, here, end)
    elif value and value[0] in _BLANK:
        here = _lead(value, text, here, end)
    while len(places) < len(value) and here < end:
        if quote == '"' and (continued := _CONTINUED.match(text, here)):
            here = continued.end()
        elif quote == '"' and (escape := _ESCAPE.match(text, here)):
            places.append(here)
            here = escape.end()
        elif quote == "'" and text.startswith("''", here):
            places.append(here)
            here += 2
        elif text[here] in _BLANK:
            here = _blanks(value, text, here, end, places)
        else:
            places.append(here)
            here += 1
    while len(places) <= len(value):
        places.append(min(here, max(end - 1, start)))
    return places


def _skip(text: str, here: int, end: int) -> int:
    while here < end and text[here] in _BLANK:
        here += 1
    return here


def _lead(value: str, text: str, here: int, end: int) -> int:
    """Where a value that begins with blanks begins: its own blanks, not the indentation."""
    own = len(value) - len(value.lstrip(_BLANK))
    return max(here, _skip(text, here, end) - own) if value.strip(_BLANK) else here


def _blanks(value: str, text: str, here: int, end: int, places: list[int]) -> int:
    stop = _skip(text, here, end)
    done = len(places)
    own = 0
    while done + own < len(value) and value[done + own] in _BLANK:
        own += 1
    if "\n" not in text[here:stop] and "\r" not in text[here:stop]:
        own = min(own, stop - here)
        places.extend(range(here, here + own))
        return stop if own else max(stop, here + 1)
    places.extend(max(here, stop - left) for left in range(own, 0, -1))
    return max(stop, here + 1)

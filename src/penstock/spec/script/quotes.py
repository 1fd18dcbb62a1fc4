"""Quotes and comments of a SQL script, in a text that may not be complete."""

from __future__ import annotations

import re

CLOSED = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`""", re.DOTALL
)
OPEN = re.compile(r"/\*|['\"`]")
_SIGN = r"\$(?:[A-Za-z_]\w*)?\$"
DOLLAR = re.compile(rf"(?P<tag>{_SIGN})(?P<body>.*?)(?P=tag)|{CLOSED.pattern}", re.DOTALL)
"""A text between `$$`, or a part of a script in which `$$` has no meaning."""
_END = re.compile(rf"{DOLLAR.pattern}|(?P<end>;)|(?P<open>{OPEN.pattern}|{_SIGN})", re.DOTALL)


def find_unclosed(text: str) -> int:
    """Returns the index of the first quote or comment that is not closed."""
    position = 0
    while match := OPEN.search(text, position):
        closed = CLOSED.search(text, position)
        if closed is None or closed.start() > match.start():
            return match.start()
        position = closed.end()
    return 0


def statement_end(text: str, start: int) -> int:
    """Returns the index of the semicolon that ends a statement, or of the end of the text."""
    for match in _END.finditer(text, start):
        if match["open"]:
            break
        if match["end"]:
            return match.start()
    return len(text)

"""Quotes of SQL: names and literals in quotes, and quotes and comments in an incomplete text."""

from __future__ import annotations

import re

from penstock.core.names import quote_name

_PLAIN = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
CLOSED = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`""", re.DOTALL
)
OPEN = re.compile(r"/\*|['\"`]")
_SIGN = r"\$(?:[A-Za-z_]\w*)?\$"
DOLLAR = re.compile(rf"(?P<tag>{_SIGN})(?P<body>.*?)(?P=tag)|{CLOSED.pattern}", re.DOTALL)
"""A text between `$$`, or a part of a script in which `$$` has no meaning."""
_END = re.compile(rf"{DOLLAR.pattern}|(?P<end>;)|(?P<open>{OPEN.pattern}|{_SIGN})", re.DOTALL)


def quoted(name: str) -> str:
    """Returns a name as it is written in Spark SQL."""
    return name if _PLAIN.match(name) else quote_name(name)


def quote(text: str) -> str:
    """Returns a text as a literal of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


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

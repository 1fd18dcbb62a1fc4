"""Parts of a SQL script with positions."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot.tokenizer_core import TokenType

_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.RAW_STRING)


class Token(NamedTuple):
    """A token: `file.text[start:end]`. `text` has no quotes."""

    text: str
    type: TokenType
    start: int
    end: int
    margin: int = 0
    """The length of `$$` or `$name$` around the text."""

    @property
    def quoted(self) -> bool:
        """Whether the token is a text or a name in quotes."""
        return self.type in _QUOTED


class Text(NamedTuple):
    """A part of a script: `file.text[start:end]`, and its value without quotes.

    In a query or an expression names in double quotes have backticks instead.
    """

    value: str
    start: int
    end: int

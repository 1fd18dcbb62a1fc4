"""Tokens of a SQL text with positions, by the tokenizer of sqlglot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsing import DIALECT

_NAME = re.compile(r"[^\W\d]\w*\Z")
_KINDS = {
    TokenType.STRING: "string", TokenType.RAW_STRING: "string", TokenType.IDENTIFIER: "name",
    TokenType.NUMBER: "number",
}  # fmt: skip


class _Tokenizer(Spark.Tokenizer):
    """The tokenizer of Spark's SQL, without tokens that are the rest of a command as `EXECUTE`."""

    COMMANDS = set()


class UnclosedError(Exception):
    """A quote or comment that has no end."""


class Token(NamedTuple):
    """A word, quoted name, string, number or sign: `text[start:end]`."""

    value: str
    """The text without quotes."""
    kind: str
    start: int
    end: int
    margin: int = 1
    """The length of a quote, if the token is quoted."""

    @property
    def word(self) -> str:
        """The word in upper case; empty for other tokens."""
        return self.value.upper() if self.kind == "word" else ""

    def is_sign(self, sign: str) -> bool:
        """Returns whether the token is this sign."""
        return self.kind == "sign" and self.value == sign

    @property
    def is_name(self) -> bool:
        """Whether the token may be an identifier."""
        return self.kind in ("word", "name")

    @property
    def is_quoted(self) -> bool:
        """Whether the token is a text or a name in quotes."""
        return self.kind in ("string", "name")


def tokenize(text: str) -> list[Token]:
    """Returns the tokens of a text. A literal with doubled quotes, as `'it''s'`, is one token.

    Raises UnclosedError.
    """
    return list(_tokens(text))


@lru_cache(maxsize=1024)
def _tokens(text: str) -> tuple[Token, ...]:
    try:
        return tuple(_join_literals(text, _tokenize(text)))
    except SqlglotError as error:
        raise UnclosedError(str(error)) from None


def _join_literals(text: str, tokens: Iterable[Token]) -> list[Token]:
    """Returns the tokens, with a literal with doubled quotes as one token."""
    joined: list[Token] = []
    for token in tokens:
        if joined and _is_doubled_quote(text, joined[-1], token):
            before = joined.pop()
            value = before.value + text[token.start] + token.value
            token = before._replace(value=value, end=token.end)
        joined.append(token)
    return joined


def _is_doubled_quote(text: str, before: Token, token: Token) -> bool:
    quote = text[token.start]
    return (
        before.kind == token.kind == "string"
        and before.end == token.start
        and quote in "'\""
        and text[before.start] == quote
    )


def _tokenize(text: str) -> Iterator[Token]:
    last = -1
    for token in _Tokenizer(dialect=DIALECT).tokenize(text):
        start, end = token.start, token.end + 1
        if start <= last:
            continue  # the suffix of a number, as in 10L
        last = start
        kind, written = _KINDS.get(token.token_type), text[start:end]
        if kind is not None:
            yield Token(written if kind == "number" else token.text, kind, start, end)
            continue
        # Some keywords, as PRIMARY KEY, are one token of sqlglot.
        for match in re.finditer(r"\S+", written):
            kind = "word" if _NAME.match(match[0]) else "sign"
            yield Token(match[0], kind, start + match.start(), start + match.end())

"""Statements of a script with a quote or a comment that is not closed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from penstock.core.errors import SpecError
from penstock.spec.script.reader import TokenReader
from penstock.spec.script.tokens import tokenize, unclosed_error
from penstock.spec.script.unread import UnreadStatements
from penstock.spec.tree.nodes import File
from penstock.sql.text.tokens import Token

_NEXT_STATEMENT = re.compile(
    r";[ \t]*(?:--[^\n]*)?\n(?:\s|--[^\n]*\n)*(?=(?:CREATE|INSERT|SELECT|WITH|SET|DROP)\s)",
    re.IGNORECASE,
)
_AFTER_QUOTE = re.compile(r"[\s,;:)\]}=<>|+*%&-]|/\*|$")


def tokenize_closed(file: File, errors: list[SpecError], unread: UnreadStatements) -> list[Token]:
    """Returns the tokens of a file without the statements in which a quote is not closed.

    Adds these statements to `unread`, and an error for each one to `errors`.
    """
    text = file.text
    while True:
        tokens, unclosed = _tokens_before_unclosed(file, text)
        if unclosed is None:
            opened = (token for token in tokens if _opens_another(file, token))
        else:
            opened = (token for token in tokens if _is_open(file, token))
        opening = next((token.start for token in opened), unclosed)
        if opening is None:
            return tokens
        errors.append(unclosed_error(file, opening))
        start, end = _statement(text, opening, tokens)
        statement = [token for token in tokens if start <= token.start < opening]
        unread.add(TokenReader(file, statement))
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]


def _tokens_before_unclosed(file: File, text: str) -> tuple[list[Token], int | None]:
    """Returns the tokens up to the first quote that is not closed, and the index of this quote."""
    try:
        return tokenize(replace(file, text=text)), None
    except SpecError as error:
        if error.where is None:
            raise
        index = file.index(error.where)
        if text[index].isspace():
            raise
        return tokenize(replace(file, text=text[:index])), index


def find_open(file: File, tokens: Iterable[Token]) -> SpecError | None:
    """Returns the error of a quote that encloses the start of another statement, if there is one.

    A quoted text may be a script, so that this is the error only of a statement that has one.
    """
    opened = (token for token in tokens if token.is_quoted and _encloses_statement(file, token))
    return next((unclosed_error(file, token.start) for token in opened), None)


def _statement(text: str, index: int, tokens: Iterable[Token]) -> tuple[int, int]:
    """Returns the start of the statement with the index, and its end by the next keyword."""
    ends = (token.end for token in tokens if token.is_sign(";"))
    match = _NEXT_STATEMENT.search(text, index)
    start = max((end for end in ends if end <= index), default=0)
    return start, match.start() + 1 if match else len(text)


def _is_open(file: File, token: Token) -> bool:
    """Returns whether the second quote of a text of several lines seems to open another text."""
    if not token.is_quoted or "\n" not in file.text[token.start : token.end]:
        return False
    return _precedes_text(file, token) or _encloses_statement(file, token)


def _opens_another(file: File, token: Token) -> bool:
    """Returns whether a quoted text encloses a statement up to the first quote of another text."""
    return token.is_quoted and _precedes_text(file, token) and _encloses_statement(file, token)


def _precedes_text(file: File, token: Token) -> bool:
    return _AFTER_QUOTE.match(file.text, token.end) is None


def _encloses_statement(file: File, token: Token) -> bool:
    return _NEXT_STATEMENT.search(file.text, token.start, token.end) is not None

"""Tokens of a SQL script: those of SQL, and texts between `$$`.

A name in double quotes, as `"user id"`, is a string among the tokens, and in backticks in queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.core.errors import SpecError
from penstock.core.names import quote_name
from penstock.spec.tree.nodes import File
from penstock.sql.text import tokens as sql_tokens
from penstock.sql.text.quoting import DOLLAR, OPEN, find_unclosed
from penstock.sql.text.tokens import Token, UnclosedError

_QUOTE = '"'
_LONG = ("/*", "$$")
"""The marks of several characters before a comment or a text."""


class Text(NamedTuple):
    """A part of a script: `file.text[start:end]`, and its value without quotes.

    In a query or an expression names in double quotes have backticks instead.
    """

    value: str
    start: int
    end: int


def tokenize(file: File) -> list[Token]:
    """Returns the tokens of a file. Raises SpecError at a quote or comment without an end."""
    bodies = _dollar_quoted(file)
    text = file.text
    for start, (end, _) in bodies.items():
        text = f"{text[:start]}'{' ' * (end - start - 2)}'{text[end:]}"
    try:
        tokens = sql_tokens.tokenize(text)
    except UnclosedError:
        raise unclosed_error(file, find_unclosed(file.text)) from None
    return [_with_body(token, file, bodies) for token in tokens]


def unclosed_error(file: File, start: int) -> SpecError:
    """Returns the error of a quote, comment or bracket without an end."""
    mark = next((mark for mark in _LONG if file.text.startswith(mark, start)), file.text[start])
    where = file.location(start, start + len(mark))
    return SpecError(f"this {mark} is not closed", code="invalid-sql", where=where)


def _with_body(token: Token, file: File, bodies: Mapping[int, tuple[int, int]]) -> Token:
    """Returns a token, with the text between `$$` that its blanks stand for."""
    if token.start not in bodies:
        return token
    margin = bodies[token.start][1]
    body = file.text[token.start + margin : token.end - margin]
    return token._replace(value=body, margin=margin)


def _dollar_quoted(file: File) -> dict[int, tuple[int, int]]:
    """Returns the texts between `$$`: their starts, ends and the length of the sign.

    Raises SpecError at a `$$` without an end.
    """
    found = {}
    rest = []
    position = 0
    for match in DOLLAR.finditer(file.text):
        rest.append((position, match.start()))
        position = match.end()
        if match["tag"]:
            found[match.start()] = (match.end(), len(match["tag"]))
    rest.append((position, len(file.text)))
    for start, end in rest:
        opening = file.text.find("$$", start, end)
        if opening >= 0 and not OPEN.search(file.text, start, opening):
            raise unclosed_error(file, opening)
    return found


def split_statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yields the tokens of each statement, without the semicolons and without empty statements."""
    statement: list[Token] = []
    for token in tokens:
        if token.is_sign(";"):
            if statement:
                yield statement
            statement = []
        else:
            statement.append(token)
    if statement:
        yield statement


def in_backticks(file: File, tokens: Iterable[Token], start: int, end: int) -> str:
    """Returns `file.text[start:end]` with the names in double quotes as names of Spark.

    The text keeps its length, so that positions in it remain. Raises SpecError.
    """
    parts = []
    for token in tokens:
        if _is_name(token, file):
            parts += [file.text[start : token.start], _name(token, file)]
            start = token.end
    return "".join([*parts, file.text[start:end]])


def _is_name(token: Token, file: File) -> bool:
    return token.kind == "string" and file.text[token.start] == _QUOTE


def _name(token: Token, file: File) -> str:
    length = token.end - token.start
    name = file.text[token.start + 1 : token.end - 1].replace(_QUOTE * 2, _QUOTE)
    written = quote_name(name)
    if not name:
        raise _invalid(token, file, "a name is empty", "write '' for an empty text")
    if len(written) > length:
        raise _invalid(
            token, file, "a name in double quotes contains a backtick", f"write {written}"
        )
    return written.ljust(length)


def _invalid(token: Token, file: File, problem: str, hint: str) -> SpecError:
    where = file.location(token.start, token.end)
    return SpecError(problem, code="invalid-sql", where=where, hint=hint)

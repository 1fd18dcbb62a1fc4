"""Names in double quotes: `"user id"`, and `"a""b"` for a name that contains a quote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot.tokenizer_core import TokenType

from penstock.core.errors import SpecError
from penstock.core.names import quote_name
from penstock.spec.script.token import Token
from penstock.spec.tree.nodes import File

QUOTE = '"'


def joined_names(tokens: Iterable[Token], file: File) -> Iterator[Token]:
    """Yields tokens, with the parts of a name such as `"a""b"` as one token."""
    last: Token | None = None
    for token in tokens:
        if last is None:
            last = token
        elif _is_name(last, file) and _is_name(token, file) and last.end == token.start:
            last = last._replace(text=f"{last.text}{QUOTE}{token.text}", end=token.end)
        else:
            yield last
            last = token
    if last is not None:
        yield last


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
    return token.type is TokenType.STRING and file.text[token.start] == QUOTE


def _name(token: Token, file: File) -> str:
    length = token.end - token.start
    name = file.text[token.start + 1 : token.end - 1].replace(QUOTE * 2, QUOTE)
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

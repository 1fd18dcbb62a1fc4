"""Names in double quotes, where only a name can stand: `a."end"`, `AS "user"`, `FROM "t"`.

Spark reads other letters than those of ASCII between backticks only.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.names import quote_name
from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Sql

_BEFORE_NAMES = frozenset({"AS", "FROM", "JOIN"})


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields backticks in place of double quotes."""
    for index, token in enumerate(sql.tokens):
        if token.kind == "word" and not token.value.isascii():
            yield [Edit(token.start, token.end, f"`{token.value}`")]
        if token.kind != "string" or sql.text[token.start] != '"':
            continue
        after = sql.is_sign(index - 1, ".") or sql.word(index - 1) in _BEFORE_NAMES
        if after or sql.is_sign(index + 1, "."):
            yield [Edit(token.start, token.end, quote_name(token.value))]

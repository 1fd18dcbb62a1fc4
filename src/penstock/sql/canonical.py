"""A canonical form of SQL: texts of the same form have the same result and the same state."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.sql import Sql, read_sql

_KEYWORDS = frozenset({
    "ALL", "AND", "ANTI", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE", "CROSS", "DESC", "DISTINCT",
    "ELSE", "END", "EXCEPT", "EXISTS", "FALSE", "FILTER", "FROM", "FULL", "GROUP", "HAVING",
    "ILIKE", "IN", "INNER", "INTERSECT", "INTERVAL", "IS", "JOIN", "LATERAL", "LEFT", "LIKE",
    "LIMIT", "NOT", "NULL", "ON", "OR", "ORDER", "OUTER", "OVER", "PARTITION", "RIGHT", "RLIKE",
    "SELECT", "SEMI", "THEN", "TRUE", "UNION", "USING", "VALUES", "WHEN", "WHERE", "WITH",
})  # fmt: skip
_CASTS = ("CAST", "TRY_CAST", "SAFE_CAST")
_LITERALS = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "INTERVAL")


def canonical_sql(text: str) -> str:
    """Returns a text without comments, white space and the semicolon at its end.

    Keywords, calls and types are in upper case. Names, strings and numbers are as written: the case
    of a name is the case of a column, and of a field that a key may contain. Hints remain.
    """
    sql = read_sql(text)
    if sql is None:
        return text.strip()
    words = [*_words(sql)]
    while words and words[-1] == ";":
        words.pop()
    return " ".join(words)


def _words(sql: Sql) -> Iterator[str]:
    position = 0
    opened: list[int] = []
    for index, token in enumerate(sql.tokens):
        hint = sql.text[position : token.start].strip()
        if hint.startswith("/*+"):
            yield hint
        if token.is_sign("("):
            opened.append(index)
        elif token.is_sign(")") and opened:
            opened.pop()
        position = token.end
        written = sql.text[token.start : token.end]
        yield written.upper() if token.word and _has_no_case(sql, index, opened) else written


def _has_no_case(sql: Sql, index: int, opened: list[int]) -> bool:
    """Returns whether a word is a keyword, the name of a call, a type or a unit.

    `opened` are the parentheses around it.
    """
    if sql.is_sign(index - 1, "."):
        return False
    if sql.is_sign(index - 1, "::"):
        return True
    if sql.word(index - 1) == "AS":
        return bool(opened) and sql.word(opened[-1] - 1) in _CASTS
    word = sql.word(index)
    following = sql.tokens[index + 1].kind if index + 1 < len(sql) else ""
    return (
        word in _KEYWORDS
        or sql.is_sign(index + 1, "(")
        or (word in _LITERALS and _is_string(sql, index + 1))
        or (sql.word(index - 2) == "INTERVAL" and following != "string")
    )


def _is_string(sql: Sql, index: int) -> bool:
    return index < len(sql) and sql.text[sql[index].start] in "'\""

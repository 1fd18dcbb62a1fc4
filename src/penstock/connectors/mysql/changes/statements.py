"""Statements in the binary log, and their effect on a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

_TOKEN = re.compile(
    r"/\*(?!M?!).*?\*/|/\*M?!\d*|\*/|--\s[^\n]*|#[^\n]*|`(?P<tick>(?:[^`]|``)*)`|\"(?P<quote>(?:[^\"]|\"\")*)\""
    r"|'(?:[^'\\]|''|\\.)*'|(?P<word>[\w$\u0080-\uffff]+)|(?P<mark>[^\s])",
    re.DOTALL,
)
_CHANGES_ROWS = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH"})
_REMOVES_PARTITION = ("TRUNCATE", "DROP", "CONVERT")
_REPLACES_ROWS = frozenset(
    {
        ("EXCHANGE", "PARTITION"),
        ("DISCARD", "PARTITION"),
        ("IMPORT", "PARTITION"),
        ("DISCARD", "TABLESPACE"),
        ("IMPORT", "TABLESPACE"),
    }
)
_REMOVES_DUPLICATES = frozenset({"UNIQUE", "PRIMARY"})
"""Keys of which `ALTER IGNORE TABLE` of MariaDB keeps one row."""


class Effect(Enum):
    """The effect of a statement."""

    BEGIN = "begin"
    END = "end"
    ROLLBACK = "rollback"
    XA = "xa"
    TRUNCATE = "truncate"
    TRUNCATE_PART = "truncate part"
    """The removal of the rows of partitions."""
    REPLACE = "replace"
    """The replacement of rows by others, or the removal of rows that are not known."""
    DROP = "drop"
    CHANGE = "change"
    """A change of rows that the log does not have."""
    NONE = "none"


def effect_of(
    statement: str, database: str, table: tuple[str, str], *, ignores_case: bool = False
) -> Effect:
    """Returns the effect of a statement on a table, or on the transaction.

    `database` is the current one of the statement. With `ignores_case` names may have another case.
    """
    tokens = _without_settings(_tokens(statement))
    if ignores_case:
        tokens = [(kind, text.lower()) for kind, text in tokens]
        database, table = database.lower(), (table[0].lower(), table[1].lower())
    words = [text.upper() if kind == "word" else "" for kind, text in tokens]
    first, second = (*words, "", "")[:2]
    simple = {("BEGIN", ""): Effect.BEGIN, ("COMMIT", ""): Effect.END}
    if (first, second) in simple:
        return simple[first, second]
    if (first, second) == ("START", "TRANSACTION"):
        return Effect.BEGIN
    if first == "ROLLBACK" and "TO" not in words:
        return Effect.ROLLBACK
    if first == "XA":
        return Effect.XA
    if first == "DROP" and second in ("DATABASE", "SCHEMA"):
        return Effect.DROP if table[0] in [text for _, text in tokens[2:]] else Effect.NONE
    if first == "TRUNCATE":
        name = tokens[2 if second == "TABLE" else 1 :]
        return Effect.TRUNCATE if _first_name(name, database) == table else Effect.NONE
    if not _names(tokens, database, table):
        return Effect.NONE
    return _effect_on_table(first, words)


def _effect_on_table(first: str, words: Sequence[str]) -> Effect:
    if first == "ALTER" and "TABLE" in words:
        pairs = set(pairwise(words))
        if ("CONVERT", "TABLE") in pairs:  # one table becomes a partition of the other
            return Effect.DROP
        removes_duplicates = "IGNORE" in words[: words.index("TABLE")]
        if pairs & _REPLACES_ROWS or (removes_duplicates and _REMOVES_DUPLICATES & {*words}):
            return Effect.REPLACE
        if {(verb, "PARTITION") for verb in _REMOVES_PARTITION} & pairs:
            return Effect.TRUNCATE_PART
        renames = [b for a, b in pairs if a == "RENAME"]
        others = ("COLUMN", "INDEX", "KEY")
        return Effect.DROP if any(b not in others for b in renames) else Effect.NONE
    if first in ("DROP", "RENAME") and "TABLE" in (*words, "TABLES")[1:4]:
        return Effect.DROP
    if words[:4] == ["CREATE", "OR", "REPLACE", "TABLE"]:
        return Effect.DROP
    return Effect.CHANGE if first in _CHANGES_ROWS else Effect.NONE


def _tokens(statement: str) -> list[tuple[str, str]]:
    """Returns the words, names and marks of a statement, also within comments that are executed."""
    tokens = []
    for match in _TOKEN.finditer(statement):
        if match.lastgroup is not None:
            text = match[match.lastgroup]
            text = text.replace("``", "`") if match.lastgroup == "tick" else text
            text = text.replace('""', '"') if match.lastgroup == "quote" else text
            tokens.append((match.lastgroup, text))
    return tokens


def _without_settings(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns a statement without variables of MariaDB before it: `SET STATEMENT ... FOR`."""
    words = [text.upper() if kind == "word" else "" for kind, text in tokens]
    if words[:2] != ["SET", "STATEMENT"] or "FOR" not in words:
        return tokens
    return tokens[words.index("FOR") + 1 :]


def _first_name(tokens: Sequence[tuple[str, str]], database: str) -> tuple[str, str]:
    """Returns the database and the name of the table with which tokens begin."""
    texts = [text for _, text in tokens[:3]]
    is_qualified = len(texts) == 3 and tokens[1] == ("mark", ".")
    return (texts[0], texts[2]) if is_qualified else (database, texts[0])


def _names(tokens: Sequence[tuple[str, str]], database: str, table: tuple[str, str]) -> bool:
    """Returns whether a statement names a table, with its database or as the current one's."""
    schema, name = table
    for index, (kind, text) in enumerate(tokens):
        if kind == "mark" or text != name:
            continue
        is_qualified = index >= 2 and tokens[index - 1] == ("mark", ".")
        if (tokens[index - 2][1] if is_qualified else database) == schema:
            return True
    return False

"""Function calls in the text of SQL."""

from __future__ import annotations

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql.parsing import DIALECT

_PATTERNS = (TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE)
"""The words before the quantifiers ANY, SOME and ALL, which are no functions."""


def called_functions(text: str, *, arguments: bool = True) -> frozenset[str]:
    """Returns the names before a parenthesis, or only before `()` without `arguments`.

    Returns none for a text without valid tokens.
    """
    try:
        tokens = tokens_of(text)
    except SqlglotError:
        return frozenset()
    before, after = [None, *tokens], [*tokens[2:], None]
    return frozenset(
        name.text.lower()
        for previous, name, opening, closing in zip(before, tokens, tokens[1:], after, strict=False)
        if opening.token_type is TokenType.L_PAREN
        and (arguments or (closing is not None and closing.token_type is TokenType.R_PAREN))
        and not (previous is not None and previous.token_type in _PATTERNS)
    )


def tokens_of(text: str) -> list[Token]:
    """Returns the tokens of a text without its string literals. Raises SqlglotError."""
    tokens = sqlglot.tokenize(text, dialect=DIALECT)
    return [token for token in tokens if token.token_type is not TokenType.STRING]

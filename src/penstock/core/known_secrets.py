"""Known secrets: the values that this process has read, and texts with asterisks in their place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import quote

from penstock.core.secret import redact_urls

SHORTEST = 4
"""The length of the shortest secret that is concealed: shorter ones occur in other words."""
_SHORTEST_LINE = 8
_ASTERISKS = "*" * 10

_secrets: set[str] = set()
_pattern: re.Pattern[str] | None = None


def remember_secret(secret: str) -> None:
    """Adds a secret to those that `conceal` replaces in this process."""
    global _pattern
    if len(secret.strip()) >= SHORTEST and secret not in _secrets:
        _secrets.add(secret)
        _pattern = re.compile("|".join(map(re.escape, concealed_forms())))


def forget_secrets() -> None:
    """Removes all secrets, for tests."""
    global _pattern
    _secrets.clear()
    _pattern = None


def conceal(text: str) -> str:
    """Returns a text with asterisks in place of each known secret, and of passwords in URLs."""
    text = redact_urls(text)
    return text if _pattern is None else _pattern.sub(_ASTERISKS, text)


def conceal_in_line(line: str) -> str:
    """Returns a line with asterisks in place of each known secret, of the same length."""
    return line if _pattern is None else _pattern.sub(lambda match: "*" * len(match[0]), line)


def concealed_forms() -> list[str]:
    """Returns the secrets in all forms of messages, longest first."""
    forms = {form for secret in _secrets for form in _forms(secret)}
    return sorted(forms, key=lambda form: (-len(form), form))


def _forms(secret: str) -> Iterator[str]:
    """Yields a secret, its forms in Python, JSON, SQL and URLs, and the lines of a long text."""
    yield secret
    yield secret.strip()
    yield repr(secret)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield secret.replace("'", "''")
    yield secret.replace("\\", "\\\\").replace("'", "\\'")
    yield quote(secret, safe="")
    yield from (line for line in secret.splitlines() if len(line.strip()) >= _SHORTEST_LINE)

"""Secrets, and redaction of lines with secrets."""

from __future__ import annotations

import re

from pydantic import SecretStr

_VALUE = re.compile(
    r"""(?<!\$\{)((?:password|passwd|passphrase|secret|token|(?:api|private|secret)_?key|credentials?)["']?\s*[:=]\s*)
    ("[^"]*"?|'[^']*'?|[^\s,}\]]+)""",
    re.IGNORECASE | re.VERBOSE,
)
_IN_URL = re.compile(r"(://[^/@:\s]*:)([^/@\s]+)(?=@)")


def redact(line: str) -> str:
    """Returns a line with asterisks in place of passwords, tokens and keys, of the same length.

    References such as `${secret:file/NAME}` are not secrets.
    """
    for pattern in (_VALUE, _IN_URL):
        line = pattern.sub(lambda match: match[1] + _asterisks(match[2]), line)
    return line


def redact_urls(text: str) -> str:
    """Returns a text with asterisks in place of the passwords in its URLs."""
    return _IN_URL.sub(lambda match: match[1] + _asterisks(match[2]), text)


def _asterisks(value: str) -> str:
    return value if "${" in value else "*" * len(value)


class Secret(SecretStr):
    """A string displayed as asterisks."""

    def reveal(self) -> str:
        """Returns the text."""
        return self.get_secret_value()


def revealed(secret: Secret | None) -> str | None:
    """Returns the text of a secret, or None."""
    return None if secret is None else secret.reveal()

"""Values that are never printed."""

from __future__ import annotations

import re

from pydantic import SecretStr

_VALUE = re.compile(
    r"""(?<!\$\{)((?:password|passwd|passphrase|secret|token|(?:api|private|secret)_?key|credentials?)["']?\s*[:=]\s*)
    ("[^"]*"?|'[^']*'?|[^\s,}\]]+)""",
    re.IGNORECASE | re.VERBOSE,
)
_IN_URL = re.compile(r"(://[^/@:\s]*:)([^/@\s]+)(?=@)")


def hidden(line: str) -> str:
    """A line of a user's file with asterisks for what its keys say are passwords and the like.

    References such as `${secret:file/NAME}` are shown. The length stays the same.
    """
    for pattern in (_VALUE, _IN_URL):
        line = pattern.sub(lambda found: found[1] + _asterisks(found[2]), line)
    return line


def _asterisks(value: str) -> str:
    return value if "${" in value else "*" * len(value)


class Secret(SecretStr):
    """A string that shows as asterisks everywhere but in `reveal()`."""

    def reveal(self) -> str:
        """The text itself, for the one call that needs it."""
        return self.get_secret_value()


def revealed(secret: Secret | None) -> str | None:
    """The text itself, if there is one."""
    return None if secret is None else secret.reveal()

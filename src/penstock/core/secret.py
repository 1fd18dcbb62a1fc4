"""Values that are never printed."""

from __future__ import annotations

from pydantic import SecretStr


class Secret(SecretStr):
    """A string that shows as asterisks everywhere but in `reveal()`."""

    def reveal(self) -> str:
        """The text itself, for the one call that needs it."""
        return self.get_secret_value()

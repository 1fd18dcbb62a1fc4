"""Errors of database servers, by their kind."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.core.errors import Permanent, Transient
from penstock.sdk.network.tls import certificate_hint

_TOO_MANY = re.compile(
    r"too many (connections|clients)|connection slots|max_\w*connections", re.IGNORECASE
)
_LIMITS = {
    "connections for role": "Run ALTER ROLE ... CONNECTION LIMIT with a greater number",
    "connections for database": "Run ALTER DATABASE ... CONNECTION LIMIT with a greater number",
    "max_user_connections": "Raise max_user_connections of the user or of the server",
}
"""The hints by words of the server that name the limit."""
UNREACHABLE = "Check that the server is running, and the option url."


def is_connection_limit(reason: str) -> bool:
    """Returns whether a reason of a server is a limit of its connections."""
    return _TOO_MANY.search(reason) is not None


def at_limit(setting: str) -> str:
    """Returns the hint for a server that closes, or does not read, connections beyond a limit."""
    return f"Check that the server is running, and has fewer connections than {setting}."


@dataclass(frozen=True)
class ServerErrors:
    """The errors of the server at `address`, with the reason that the server or its client gives.

    `address` has no credentials.
    """

    address: str

    def unreachable(self, reason: str, hint: str = UNREACHABLE) -> Transient:
        """Returns the error of a connection that failed or ended."""
        return Transient(f"could not reach {self._server}: {reason}", code="unreachable", hint=hint)

    def tls(self, reason: str) -> Permanent:
        """Returns the error of a TLS handshake."""
        return Permanent(
            f"TLS verification of {self._server} failed: {reason}", code="tls",
            hint=certificate_hint(
                reason, "Set tls.ca to the CA certificate file, or check that the server has TLS."
            ),
        )  # fmt: skip

    def authentication(self, reason: str) -> Permanent:
        """Returns the error of rejected credentials."""
        return Permanent(
            f"authentication to {self._server} failed: {reason}", code="authentication",
            hint="Check auth.username and auth.password.",
        )  # fmt: skip

    def authorization(self, reason: str, hint: str) -> Permanent:
        """Returns the error of a missing privilege."""
        return Permanent(
            f"{self._server} denied permission: {reason}", code="authorization", hint=hint
        )

    def unknown_database(self, reason: str) -> Permanent:
        """Returns the error of a database that does not exist."""
        return Permanent(
            f"cannot connect to {self._server}: {reason}", code="unknown-database",
            hint="Check the database in url.",
        )  # fmt: skip

    def busy(self, reason: str, hint: str | None) -> Transient:
        """Returns the error of a statement or a connection that may succeed later."""
        if is_connection_limit(reason):
            limits = (hint for words, hint in _LIMITS.items() if words in reason)
            raised = next(limits, "Raise max_connections of the server")
            return Transient(
                f"could not connect to {self._server}: {reason}", code="busy",
                hint=f"{raised}, or close other connections.",
            )  # fmt: skip
        return Transient(
            f"could not execute the statement: {self._server} returned: {reason}", code="busy",
            hint=hint,
        )  # fmt: skip

    def statement(self, reason: str) -> Permanent:
        """Returns the error of a statement that fails each time."""
        return Permanent(
            f"cannot execute the statement: {self._server} returned: {reason}", code="rejected"
        )

    @property
    def _server(self) -> str:
        return f"the database {self.address}"

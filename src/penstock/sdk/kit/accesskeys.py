"""Keys for Amazon's services, and for those that speak their protocols."""

from __future__ import annotations

from penstock.core.secret import Secret


def need_whole(
    access_key: str | None, secret_key: Secret | None, session_token: Secret | None
) -> None:
    """Raises ValueError where one is given without those that it belongs to."""
    if (access_key is None) != (secret_key is None):
        raise ValueError("access_key and secret_key belong together")
    if session_token is not None and access_key is None:
        raise ValueError("session_token needs access_key and secret_key")

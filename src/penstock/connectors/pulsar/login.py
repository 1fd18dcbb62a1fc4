"""Who we are, as Pulsar's protocol says it."""

from __future__ import annotations

from typing import NamedTuple


class Login(NamedTuple):
    """A method of authentication, and what it needs."""

    method: str
    data: str = ""

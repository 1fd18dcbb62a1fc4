"""Keys of NATS, and the credentials that they sign."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

_UNLIMITED = {
    **dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1),
    "wildcards": True,
}
_FILE = """-----BEGIN NATS USER JWT-----
{token}
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
{seed}
------END USER NKEY SEED------
"""


class Key:
    """A new key pair of a `kind`: operator, account or user."""

    def __init__(self, kind: str) -> None:
        import nkeys

        prefix = getattr(nkeys, f"PREFIX_BYTE_{kind.upper()}")
        encoded = bytes(nkeys.encode_seed(os.urandom(32), prefix))
        self._kind, self._pair = kind, nkeys.from_seed(bytearray(encoded))
        self.seed, self.public = encoded.decode(), self._pair.public_key.decode()

    def token(self, other: Key, **claims: Any) -> str:
        """A JWT by which this one vouches for another."""
        said = {
            "jti": other.public, "iat": int(time.time()), "iss": self.public, "sub": other.public,
            "name": other._kind, "nats": {"type": other._kind, "version": 2, **claims},
        }  # fmt: skip
        signed = f"{_coded({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_coded(said)}"
        return f"{signed}.{_base64(self._pair.sign(signed.encode()))}"


class Credentials:
    """An operator with an account, and what proves that one is a user of the account.

    That is the `token` with the `seed` of its key, which are also in the file `path`.
    """

    def __init__(self, directory: Path) -> None:
        operator, account, user = Key("operator"), Key("account"), Key("user")
        self.access = (
            f"operator: {operator.token(operator)}\nresolver: MEMORY\n"
            f"resolver_preload: {{ {account.public}: "
            f"{operator.token(account, limits=_UNLIMITED)} }}"
        )
        self.path = directory / "user.creds"
        self.token, self.seed = account.token(user, subs=-1, data=-1, payload=-1), user.seed
        self.path.write_text(_FILE.format(token=self.token, seed=self.seed))


def _coded(part: dict[str, Any]) -> str:
    return _base64(json.dumps(part).encode())


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")

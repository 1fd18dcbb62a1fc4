"""`penstock rotate`: a new key for the secrets of a server."""

from __future__ import annotations

from penstock.cli.server_options import Data, Server, connect
from penstock.core.text import plural


def rotate(*, server: Server = None, data: Data = None) -> None:
    """Encrypt all secrets of a server with a new key, and remove the earlier keys.

    Keys of the variable PENSTOCK_KEYS or of --key-command remain: the first of them encrypts.

      penstock rotate --server http://localhost:7077
    """
    count = connect(server, data).rotate_keys()
    print(f"{plural(count, 'secret')} encrypted with the first key")

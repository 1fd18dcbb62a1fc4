"""Options of commands over a server: its address and its token."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter

from penstock.core.errors import UserError

if TYPE_CHECKING:
    from penstock.server_client import ServerClient

PipelineName = Annotated[str, Parameter(name="NAME", help="The name of a pipeline of the server.")]
Server = Annotated[
    str | None,
    Parameter(
        metavar="URL",
        help="The server; by default PENSTOCK_SERVER, or else http://localhost:7077. The token is "
        "PENSTOCK_TOKEN, or that in the data of a server of this machine.",
    ),
]
Data = Annotated[
    Path | None,
    Parameter(
        metavar="DIR",
        help="The data of a server of this machine, with its token; by default .penstock/server.",
    ),
]
Fresh = Annotated[bool, Parameter(help="Reset the state: offsets, windows and dead letters.")]
DEFAULT_URL = "http://localhost:7077"
DEFAULT_DATA = Path(".penstock", "server")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def server_of(given: str | None) -> str | None:
    """Returns the address of the option or of the environment; None without both."""
    return given or os.environ.get("PENSTOCK_SERVER") or None


def uses_server(server: str | None, words: Sequence[Path]) -> bool:
    """Returns whether words name pipelines of a server: with --server, or PENSTOCK_SERVER and no
    file.
    """
    return bool(server or (server_of(None) and not any(map(_is_file, words))))


def _is_file(word: Path) -> bool:
    return word.is_file() or word.suffix in (".yaml", ".yml", ".sql", ".json", ".toml")


def connect(server: str | None, data: Path | None) -> ServerClient:
    """Returns the client of a server. Raises UserError without a token."""
    from penstock.server_client import ServerClient

    url = server_of(server) or DEFAULT_URL
    client = ServerClient(url, _token(url, data))
    if url.lower().startswith("http://") and _host(url) not in LOOPBACK:
        print(
            f"warning: the token is sent to {_host(url)} without encryption: use https://",
            file=sys.stderr,
        )
    return client


def _token(url: str, data: Path | None) -> str:
    """Returns the token. That of a file is for a server of this machine only."""
    given = os.environ.get("PENSTOCK_TOKEN", "").strip()
    if given and data is None:
        return given
    if data is None and _host(url) not in LOOPBACK:
        raise UserError(
            f"there is no token for the server {_host(url)}", code="no-token",
            hint="Set PENSTOCK_TOKEN to a token of the server.",
        )  # fmt: skip
    file = (data or DEFAULT_DATA) / "token"
    try:
        return file.read_text("utf-8", "replace").strip()
    except OSError as error:
        raise UserError(
            f"there is no token for the server: {file}: {error.strerror}", code="no-token",
            hint="Set PENSTOCK_TOKEN, or name the data directory of the server with --data.",
        ) from error  # fmt: skip


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""

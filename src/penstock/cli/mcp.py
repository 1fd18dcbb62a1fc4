"""`penstock mcp`: the server of tools for assistants."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.server_options import Data, Server, connect
from penstock.core.errors import MissingExtra, UserError

if TYPE_CHECKING:
    from penstock.mcp.pipelines import Pipelines

Directory = Annotated[Path, Parameter(name="DIR", help="The directory of the pipeline files.")]
AllowWrites = Annotated[
    bool, Parameter(help="Permit tools that write pipelines, replay dead letters, start and stop.")
]


def mcp(
    directory: Directory = Path(),
    /,
    *,
    server: Server = None,
    data: Data = None,
    allow_writes: AllowWrites = False,
) -> None:
    """Start a server of tools for an assistant, by the Model Context Protocol.

    The tools list, check, explain and preview pipelines, run their tests, and show dead letters
    and documentation. They work on the files of a directory, or with --server on the pipelines of
    a server, with the rights of the token. The protocol uses standard input and output.

      penstock mcp pipelines
      penstock mcp pipelines --allow-writes
      penstock mcp --server https://penstock.example.com
    """
    try:
        from penstock.mcp.tools import make_server
    except ModuleNotFoundError as error:
        raise MissingExtra.of("mcp", error.name or "mcp") from error
    from penstock.mcp.local import LocalPipelines
    from penstock.mcp.remote import RemotePipelines
    from penstock.server.workers.pool import WorkerPool

    workers = WorkerPool(1, os.environ)
    pipelines: Pipelines
    if server is not None:
        pipelines = RemotePipelines(connect(server, data))
    elif directory.is_dir():
        pipelines = LocalPipelines(directory, workers)
    else:
        raise UserError(
            f"{directory} is no directory", code="missing-file",
            hint="Pass the directory of the pipelines.",
        )  # fmt: skip
    try:
        make_server(pipelines, allow_writes=allow_writes).run("stdio")
    finally:
        workers.close()

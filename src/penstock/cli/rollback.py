"""`penstock rollback`: an earlier version of a pipeline of a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from penstock.cli.server_options import Data, Fresh, PipelineName, Server, connect

Number = Annotated[
    int, Parameter(name="N", help="The number of the version; see penstock versions.")
]


def rollback(
    name: PipelineName, number: Number, /, *, fresh: Fresh = False, server: Server = None,
    data: Data = None,
) -> None:  # fmt: skip
    """Apply an earlier version of a pipeline of a server again, as a new version.

    The text passes the same checks as by penstock apply: first the changes are printed, and a
    version that the state does not support stops nothing.

      penstock rollback shop 3
    """
    from penstock.cli.apply import preview, print_applied
    from penstock.server_client import Draft

    client = connect(server, data)
    pipeline = client.pipeline(name)
    earlier = client.version(pipeline.id, number)
    draft = Draft(Path(f"version {number} of {pipeline.file}"), earlier.text, pipeline.file)
    preview(client, pipeline, draft, fresh=fresh)
    print_applied(pipeline, client.roll_back(pipeline, number, draft, fresh=fresh))

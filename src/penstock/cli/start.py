"""`penstock start`: the start of a pipeline of a server."""

from __future__ import annotations

from penstock.cli.server_options import Data, Fresh, PipelineName, Server, connect


def start(
    name: PipelineName, /, *, fresh: Fresh = False, server: Server = None, data: Data = None
) -> None:
    """Start a pipeline of a server. The server starts it again after failures.

    The run resumes from the last committed batch. A running pipeline continues.

      penstock start shop
      penstock start shop --fresh
    """
    client = connect(server, data)
    pipeline = client.pipeline(name)
    client.start(pipeline.id, fresh=fresh)
    print(f"{name} starts; follow it with penstock logs {name} -f")

"""`penstock versions`: the versions of a pipeline of a server."""

from __future__ import annotations

from penstock.cli.server_options import Data, PipelineName, Server, connect


def versions(name: PipelineName, /, *, server: Server = None, data: Data = None) -> None:
    """List the versions of a pipeline of a server, last first.

    The applied version is marked with an asterisk.

      penstock versions shop
      penstock versions shop --server https://penstock.example.com
    """
    from penstock.cli.printing import print_table
    from penstock.core.text import printable

    client = connect(server, data)
    pipeline = client.pipeline(name)
    found = client.versions(pipeline.id)
    if not found:
        print(f"{name} has no versions yet; its first start or apply adds one")
        return
    rows = [
        (f"{each.number}{' *' if each.number == pipeline.version else ''}", each.time, each.author,
         printable(" ".join(each.note.split())))
        for each in found
    ]  # fmt: skip
    print_table(("version", "time", "author", "note"), rows, wrap=True)
    if pipeline.changed:
        print(f"{pipeline.file} differs from version {pipeline.version}; see penstock apply")

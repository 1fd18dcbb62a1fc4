"""Program that serves a directory whose runs are stand-ins: `serve_stand_ins.py DIR PORT`.

It is a process of its own, so that tests can kill it. Checks of plans are static ones, because the
others start Spark.
"""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.core import log
from penstock.server.changes import Changes
from penstock.server.server import serve
from penstock.server.settings import Settings
from server_console import STAND_IN, STAND_IN_HOST, STAND_IN_SESSION


def main(directory: Path, port: int) -> None:
    check = Changes._check
    Changes._check = lambda self, draft, level: check(  # type: ignore[method-assign]
        self, draft, "static"
    )
    data = directory / ".penstock" / "server"
    settings = Settings(
        directory, data, port=port, command=STAND_IN, session_command=STAND_IN_SESSION,
        host_command=STAND_IN_HOST,
    )  # fmt: skip
    serve(settings, log.make(), lambda server: print("ready", flush=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]))

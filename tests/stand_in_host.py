"""Stand-in for the host of a share without Spark, with runs of `stand_in_run`.

A run with the behavior `ending` ends the host before the lock.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import stand_in_run
from penstock.runtime.sharing.directory import HostDirectory, Request, RunEnd
from penstock.runtime.sharing.host import serve
from penstock.runtime.sharing.modules import LoadedModules


class StandInRuns:
    """Runs without Spark. Each one loads the Python files beside its pipeline."""

    broken = False

    def __init__(self, share: str) -> None:
        self._modules = LoadedModules(share)

    def perform(self, request: Request) -> RunEnd:
        file, log = Path(request.file), Path(request.log_file)
        if (file.parent / "behavior").read_text() == "ending":
            os.kill(os.getpid(), signal.SIGKILL)
        if not self._modules.add(file.parent.glob("*.py")):
            return RunEnd(needs_new_host=True)
        connections = request.variables.get("PENSTOCK_CONNECTIONS", "")
        code = stand_in_run.perform(file, log, request.run, connections, fresh=request.fresh)
        return RunEnd(code)

    def cancel(self, run: str) -> None:
        """Does nothing: the start waits until the end of the host."""

    def stop(self) -> None:
        """Does nothing: the runs end by their state directories."""


if __name__ == "__main__":
    serve(HostDirectory(Path(sys.argv[2])), StandInRuns(sys.argv[1]))

"""The daemon of PySpark's workers. A worker closes its open transforms before its end.

Spark starts this module by the setting `spark.python.daemon.module`, once on each executor. The
daemon imports the modules of workers before it forks the first one.
"""

from __future__ import annotations

import os
import signal
import socket
from types import FrameType

from penstock.engine.workers.preload import SINGLE_THREADED, preload

for _name, _value in SINGLE_THREADED.items():
    os.environ.setdefault(_name, _value)

from pyspark import daemon  # noqa: E402 (the settings come before the first import)

from penstock.engine.workers.connection import CONNECTION  # noqa: E402
from penstock.engine.workers.open_transforms import OPEN_TRANSFORMS  # noqa: E402

_serve_task = daemon.worker
_ending = False


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Serves a task like `pyspark.daemon.worker`. A code other than 0 ends the worker."""
    # `_serve_task` installs this handler for the signals that end a worker.
    vars(daemon)["SIG_DFL"] = _end
    CONNECTION.set(sock)
    code = 1
    try:
        code = _serve_task(sock, authenticated)
    finally:
        if code or not os.environ.get("SPARK_REUSE_WORKER"):
            OPEN_TRANSFORMS.close()
    return code


def _end(number: int, frame: FrameType | None) -> None:
    global _ending
    if number == signal.SIGCHLD or _ending:
        return
    _ending = True
    OPEN_TRANSFORMS.close()
    os._exit(128 + number)


if __name__ == "__main__":
    daemon.worker = worker
    preload()
    daemon.manager()

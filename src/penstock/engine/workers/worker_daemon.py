"""The daemon of PySpark's workers. A worker closes its open transforms before its end.

Spark starts this module by the setting `spark.python.daemon.module`.
"""

from __future__ import annotations

import os
import signal
import socket
from types import FrameType

from pyspark import daemon

from penstock.engine.workers.connection import CONNECTION
from penstock.engine.workers.open_transforms import OPEN_TRANSFORMS

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
    daemon.manager()

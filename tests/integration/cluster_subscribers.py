"""Subscribers of sinks that listen at the driver, whose tasks run on the workers of a cluster."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import zmq

from servers.server import free_port
from servers.spark import SparkCluster

SOCKETS = """\
name: sockets
runtime: {master: "MASTER", state: state, spark: {spark.executor.memory: 512m}}
sources:
  in: {type: generate, rows: 400, fields: {n: sequence}, max_records: 100, partitions: 2}
transforms:
  hosts:
    type: python
    from: in
    per: row
    schema: n LONG, host STRING
    code: |
      import socket

      def transform(row):
          return {"n": row["n"], "host": socket.gethostname()}
sinks:
  lines: {type: tcp, from: hosts, listen: "127.0.0.1:TCP_PORT", min_subscribers: 1, timeout: 60s}
  messages: {type: zeromq, from: hosts, listen: "tcp://127.0.0.1:ZEROMQ_PORT", timeout: 60s}
"""
ROWS = list(range(400))
_POLL_MILLISECONDS = 50


class Subscribers:
    """A subscriber of each sink, beside the runs. `received` has the rows by sink."""

    def __init__(self, tcp: int, zeromq: int) -> None:
        self._tcp, self._zeromq = tcp, zeromq
        self.received: dict[str, list[dict[str, object]]] = {"lines": [], "messages": []}
        self.ended = threading.Event()

    def receive_all(self) -> None:
        """Receives until the runs have ended."""
        with ThreadPoolExecutor(1) as thread:
            other = thread.submit(self._receive_lines)
            self._receive_messages()
            other.result()

    def _receive_lines(self) -> None:
        """Connects again after each end: the sink listens once before the run, too."""
        while not self.ended.wait(_POLL_MILLISECONDS / 1000):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._tcp)) as peer:
                lines = peer.makefile().read().splitlines()
                self.received["lines"] += map(json.loads, lines)

    def _receive_messages(self) -> None:
        with zmq.Context() as context, context.socket(zmq.SUB) as peer:
            peer.subscribe(b"")
            peer.connect(f"tcp://127.0.0.1:{self._zeromq}")
            while not self.ended.is_set():
                if peer.poll(_POLL_MILLISECONDS):
                    self.received["messages"].append(json.loads(peer.recv()))


def write_sockets(project: Path, cluster: SparkCluster) -> Subscribers:
    """Writes the pipeline. Returns the subscribers of its sinks."""
    tcp, zeromq = free_port(), free_port()
    text = SOCKETS.replace("MASTER", cluster.url)
    text = text.replace("TCP_PORT", str(tcp)).replace("ZEROMQ_PORT", str(zeromq))
    (project / "sockets.yaml").write_text(text)
    return Subscribers(tcp, zeromq)

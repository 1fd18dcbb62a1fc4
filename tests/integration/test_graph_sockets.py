"""A graph of stream-data-processor whose producers and consumers are sockets of both kinds."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pipelines import Workspace
from stream_data_processor import SECONDS, Publisher, Subscriber

from servers.peer import Peer
from servers.server import free_port

pytestmark = pytest.mark.spark

GRAPH = """\
producers:
  metrics:
    type: tcp
    endpoint: tcp://127.0.0.1:{port}
    parser:
      type: graphite
      template_strings: ["*.cpu.*.percent.* host.measurement.cpu.type.field"]
      fields: {{idle: double}}
  orders:
    type: zeromq
    endpoint: ipc://{directory}/a_to_b
    parser: {{type: csv, header: none, schema: {{time: timestamp, id: int64, price: double}}}}
nodes:
  cpu: {{from: metrics, handlers: [{{type: filter, conditions: measurement = 'cpu'}}]}}
  hosts:
    from: cpu
    handlers:
      - {{type: group, columns: [host]}}
      - {{type: window, period: 10, every: 10}}
      - {{type: aggregate, aggregate_columns: {{idle: {{last: last, mean: mean}}}}}}
      - {{type: default, double: {{level: 90}}}}
      - {{type: map, expressions: {{is_busy: mean < level}}}}
  prices:
    from: orders
    handlers: [{{type: map, expressions: {{twice: price * 2}}}}]
consumers:
  busy: {{type: tcp, from: hosts, endpoints: ["{peer}"]}}
  out:
    type: zeromq
    from: prices
    endpoint: ipc://{directory}/b_to_c
    sync: [ipc://{directory}/b_to_c_sync]
"""
LINES = "".join(
    f"h{host}.cpu.0.percent.idle {80 + host * 8 + second} {1_600_000_000 + second}\n"
    for second in range(0, 18, 3)
    for host in range(2)
).encode()


def until(is_true: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.05)


def connected(port: int) -> socket.socket:
    """Returns a connection once the producer listens."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 10)
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_sockets_at_both_ends(workspace: Workspace, peer: Peer, tmp_path: Path) -> None:
    port = free_port()
    graph = GRAPH.format(port=port, peer=peer.address, directory=tmp_path)
    a, b = f"ipc://{tmp_path}/a_to_b", f"ipc://{tmp_path}/b_to_c"
    with Subscriber(b, f"{b}_sync") as subscriber, Publisher(a, f"{a}_sync") as publisher:
        handle = workspace.start(graph)
        with connected(port) as client:
            for start in range(0, len(LINES), 50):  # lines end within packets
                client.sendall(LINES[start : start + 50])
        publisher.start()
        publisher.send(b"2020-09-13T12:26:40Z,1,1.5", b"2020-09-13T12:26:41Z,2,no number")
        publisher.send(b"2020-09-13T12:26:42Z,3,2.5")
        messages = subscriber.take(2)
        until(lambda: b"".join(peer.kept()).count(b"is_busy") == 2)
        handle.stop()
        assert handle.wait(SECONDS) is not None
    assert [json.loads(each)["twice"] for each in messages] == [3.0, 5.0]
    frames = b"".join(peer.kept())
    rows = []
    while frames:
        size = int(frames[:10])
        rows.append(json.loads(frames[10 : 10 + size]))
        frames = frames[10 + size :]
    assert sorted((row["host"], row["last"], row["mean"], row["is_busy"]) for row in rows) == [
        ("h0", 89.0, 84.5, True), ("h1", 97.0, 92.5, False),
    ]  # fmt: skip
    (letter,) = workspace.dead_letters("pipeline")
    assert letter["node"] == "orders"

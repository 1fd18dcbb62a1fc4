"""All pairs of systems: `PYTHONPATH=tests python -m crossing` moves the rows from each to each.

Without `--servers` all servers are started, and the run takes half an hour. With `--sinks 2` it
takes minutes: the rows move from files to each system, and from each to the two after it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from crossing import message_systems, socket_systems, systems
from crossing.pipeline import crossings
from crossing.systems import System
from servers.aws import Aws
from servers.clickhouse import ClickHouse
from servers.ferretdb import FerretDb
from servers.influxdb import Influxdb
from servers.kafka import Kafka
from servers.mariadb import MariaDb
from servers.mosquitto import Mosquitto
from servers.nats import Nats
from servers.opensearch import Opensearch
from servers.peer import Peer
from servers.postgres import Postgres
from servers.pulsar import Pulsar
from servers.pushing import Pushing
from servers.rabbitmq import Rabbit
from servers.redis import Redis
from servers.server import Server
from servers.web import Web

SERVERS: Mapping[str, tuple[type[Server], Callable[[Any], Sequence[System]]]] = {
    "postgres": (Postgres, lambda server: [systems.postgres(server)]),
    "mysql": (MariaDb, lambda server: [systems.mysql(server)]),
    "clickhouse": (ClickHouse, lambda server: [systems.clickhouse(server)]),
    "mongodb": (FerretDb, lambda server: [systems.mongodb(server)]),
    "opensearch": (Opensearch, lambda server: [systems.opensearch(server)]),
    "kafka": (Kafka, message_systems.kafka),
    "nats": (Nats, message_systems.nats),
    "redis": (Redis, message_systems.redis),
    "rabbitmq": (Rabbit, message_systems.rabbitmq),
    "mqtt": (Mosquitto, message_systems.mqtt),
    "aws": (Aws, message_systems.aws),
    "http": (Web, message_systems.http),
    "pulsar": (Pulsar, message_systems.pulsar),
    "influxdb": (Influxdb, lambda server: [systems.influxdb(server)]),
    "pushing": (Pushing, socket_systems.websocket),
    "peer": (Peer, socket_systems.tcp),
}


def main() -> None:
    """Moves the rows from every system to every other one, and prints the differences."""
    from penstock.testing.suite import case_session

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--servers", nargs="*", default=[*SERVERS], choices=[*SERVERS])
    parser.add_argument("--sinks", type=int, help="sinks of each system; all by default")
    options = parser.parse_args()
    count = 0
    with case_session() as spark, tempfile.TemporaryDirectory() as name, ExitStack() as running:
        directory = Path(name)
        all_ = [
            *systems.without_server(directory / "data"),
            *systems.of_java(directory / "java"),
            *socket_systems.without_server(),
        ]
        for kind in options.servers:
            server, made = SERVERS[kind]
            all_ += made(running.enter_context(server()))
        for crossing in crossings(directory, all_, options.sinks or len(all_)):
            found = crossing.run(spark)
            wrong = {sink: lines for sink, lines in found.items() if lines}
            count += sum(map(len, wrong.values()))
            print(f"{crossing.source.name}: {len(found) - len(wrong)} of {len(found)}", flush=True)
            for sink, lines in wrong.items():
                print(*(f"  {sink}: {line}" for line in lines), sep="\n", flush=True)
    sys.exit(f"{count} differences" if count else 0)


if __name__ == "__main__":
    main()

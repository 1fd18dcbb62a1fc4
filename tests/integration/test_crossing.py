"""Rows of every type from each system to each other one, with all values compared.

The tests have the systems that need no server; the tests of other systems call `by_hand.check`.
`python tests/integration/test_crossing.py` moves the rows from every system to every other one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossing import by_hand, message_systems, systems
from crossing.pipeline import Crossing
from crossing.systems import System
from crossing.wide_rows import wide_rows
from servers.aws import Aws
from servers.clickhouse import ClickHouse
from servers.ferretdb import FerretDb
from servers.kafka import Kafka
from servers.mariadb import MariaDb
from servers.mosquitto import Mosquitto
from servers.nats import Nats
from servers.opensearch import Opensearch
from servers.postgres import Postgres
from servers.pulsar import Pulsar
from servers.rabbitmq import Rabbit
from servers.redis import Redis
from servers.server import Server
from servers.web import Web

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIVEN = "given"
"""The name of the files from which all other systems get their rows."""
NEXT = 2
"""The number of sinks of each source in a short run."""


@pytest.mark.parametrize("number", range(8))
def test_values_of_a_system(number: int, tmp_path: Path) -> None:
    system = systems.without_server(tmp_path)[number]
    assert by_hand.check(system, tmp_path / "work") == []


@pytest.mark.spark
def test_rows_from_system_to_system(tmp_path: Path, penstock_spark: SparkSession) -> None:
    for crossing in crossings(tmp_path, systems.without_server(tmp_path / "data"), NEXT):
        assert crossing.run(penstock_spark) == {sink.name: [] for sink in crossing.sinks}


def crossings(directory: Path, all_: Sequence[System], count: int) -> Iterator[Crossing]:
    """Yields a run from files to all systems, and from each to `count` others."""
    path = directory / "given" / GIVEN
    path.mkdir(parents=True)
    pq.write_table(pa.Table.from_batches([wide_rows()]), path / "rows.parquet")
    files = systems.files(directory / "given", "parquet", name=GIVEN)
    yield Crossing(directory, files, all_, GIVEN)
    for place, source in enumerate(all_):
        if source.payloads is None or source.feed is not None:
            others = [all_[(place + step) % len(all_)] for step in range(1, count + 1)]
            yield Crossing(directory, source, others, GIVEN)


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
}


def main() -> None:
    """Moves the rows from every system to every other one, and prints the differences."""
    from penstock.testing.suite import case_session

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--servers", nargs="*", default=[*SERVERS], choices=[*SERVERS])
    options = parser.parse_args()
    count = 0
    with case_session() as spark, tempfile.TemporaryDirectory() as name, ExitStack() as running:
        directory = Path(name)
        all_ = systems.without_server(directory / "data")
        for kind in options.servers:
            server, made = SERVERS[kind]
            all_ += made(running.enter_context(server()))
        for crossing in crossings(directory, all_, len(all_)):
            found = crossing.run(spark)
            wrong = {sink: lines for sink, lines in found.items() if lines}
            count += sum(map(len, wrong.values()))
            print(f"{crossing.source.name}: {len(found) - len(wrong)} of {len(found)}", flush=True)
            for sink, lines in wrong.items():
                print(*(f"  {sink}: {line}" for line in lines), sep="\n", flush=True)
    sys.exit(f"{count} differences" if count else 0)


if __name__ == "__main__":
    main()

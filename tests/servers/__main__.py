"""`./dev server`: a server for experiments."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Annotated

import pytest
from cyclopts import App, Parameter

from servers import apicurio, ferretdb
from servers import influxdb as influx
from servers.clickhouse import DATABASE, PASSWORD, USER, ClickHouse
from servers.ferretdb import FerretDb
from servers.influxdb import Influxdb
from servers.kafka import VERSION, Kafka
from servers.mariadb import MariaDb
from servers.opensearch import Opensearch
from servers.postgres import Postgres
from servers.server import Server

app = App(
    name="./dev server",
    help="Starts a server on this machine. It runs until Ctrl-C; its data go with it.",
    version_flags=[],
)
Port = Annotated[int, Parameter(help="The port of 127.0.0.1 that it listens at.")]


@app.command(help=f"Apache Kafka {VERSION}, one node.")
def kafka(*, port: Port = 9092) -> None:
    """Runs a broker."""
    _run(
        port,
        lambda: Kafka(port),
        f"Apache Kafka {VERSION} is ready, with brokers: 127.0.0.1:{port}",
    )


@app.command(help=f"Apicurio Registry {apicurio.VERSION}, which speaks Confluent's protocol.")
def registry(*, port: Port = 8081) -> None:
    """Runs a registry of schemas."""
    greeting = f"Apicurio Registry {apicurio.VERSION} is ready, with registry: {{url: "
    url = f"http://127.0.0.1:{port}{apicurio.PATH}"
    _run(port, lambda: apicurio.Apicurio(port), f"{greeting}{url}}}")


@app.command(help=f"{Postgres.title}, with the database `shop` of the user `penstock`.")
def postgres(*, port: Port = 5432) -> None:
    """Runs a database that permits logical replication. The password is `penstock`."""
    _run(
        port,
        lambda: Postgres(port, "penstock", "penstock", "shop"),
        f"{Postgres.title} is ready, with url: postgresql://127.0.0.1:{port}/shop "
        "and auth: {username: penstock, password: penstock}",
    )


@app.command(help=f"{MariaDb.title}, with the database `shop` of the user `penstock`.")
def mariadb(*, port: Port = 3306) -> None:
    """Runs a database with a binary log of whole rows. The password is `penstock`."""
    _run(
        port,
        lambda: MariaDb(port, "penstock", "penstock", "shop"),
        f"{MariaDb.title} is ready, with url: mysql://127.0.0.1:{port}/shop "
        "and auth: {username: penstock, password: penstock}",
    )


@app.command(help=f"ClickHouse: {ClickHouse.title}, with the database `{DATABASE}`.")
def clickhouse(*, port: Port = 8123) -> None:
    """Runs the engine of ClickHouse behind its HTTP interface."""
    _run(
        port,
        lambda: ClickHouse(port),
        f"{ClickHouse.title} is ready, with url: clickhouse://127.0.0.1:{port}/{DATABASE} "
        f"and auth: {{username: {USER}, password: {PASSWORD}}}",
    )


@app.command(help=f"{FerretDb.title}, with the database `{ferretdb.DATABASE}`.")
def mongodb(*, port: Port = 27017) -> None:
    """Runs a server with the protocol of MongoDB."""
    _run(
        port,
        lambda: FerretDb(port),
        f"{FerretDb.title} is ready, with url: mongodb://127.0.0.1:{port}/{ferretdb.DATABASE} "
        f"and auth: {{username: {ferretdb.USER}, password: {ferretdb.PASSWORD}}}",
    )


@app.command(help=f"{Influxdb.title}, with the database `penstock`.")
def influxdb(*, port: Port = 8086) -> None:
    """Runs a database of time series."""
    _run(
        port,
        lambda: InfluxdbWithDatabase(port),
        f"{Influxdb.title} is ready, with url: http://127.0.0.1:{port}, database: penstock "
        f"and auth: {{username: {influx.USER}, password: {influx.PASSWORD}}}",
    )


@app.command(help=f"{Opensearch.title}, one node without security.")
def opensearch(*, port: Port = 9200) -> None:
    """Runs a search engine."""
    _run(
        port,
        lambda: Opensearch(port),
        f"{Opensearch.title} is ready, with url: http://127.0.0.1:{port}",
    )


class InfluxdbWithDatabase(Influxdb):
    """InfluxDB with the database `penstock`."""

    def ready(self) -> None:
        """Creates the user and the database."""
        super().ready()
        self.query("CREATE DATABASE penstock")


def _run(port: int, server: Callable[[], Server], greeting: str) -> None:
    _check_free(port)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda *_: sys.exit())
    try:
        with server() as running:
            print(f"{greeting}\nCtrl-C stops it and removes its data.", flush=True)
            while running.process.running:
                time.sleep(0.2)
            sys.exit(f"it ended by itself; the end of its log:\n{running.last_words()}")
    except (RuntimeError, pytest.skip.Exception, pytest.fail.Exception) as error:
        sys.exit(f"./dev server: {error}")


def _check_free(port: int) -> None:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        sys.exit(f"./dev server: port {port} is not available ({why}); choose another with --port")


if __name__ == "__main__":
    app()

"""TLS of connectors to databases and object stores: wrong certificates, and lost connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.clickhouse import ClickhouseSink
from penstock.connectors.delta import DeltaSink
from penstock.connectors.files import FilesSink
from penstock.connectors.http.influxdb import InfluxdbSink
from penstock.connectors.http.opensearch import OpensearchSink
from penstock.connectors.iceberg import IcebergSink
from penstock.connectors.mongodb import MongodbSink
from penstock.connectors.postgres import PostgresSink
from penstock.core.errors import Permanent, Transient
from penstock.formats.json import Json, JsonConfig
from servers.certificates import Authority
from tls_listener import tls_listener

SECRET = "made-up-password"
AUTH = {"auth": {"username": "made-up-user", "password": SECRET}}
KEYS = {"access_key": "made-up-key", "secret_key": SECRET}
SERVERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "postgresql": (PostgresSink, {"table": "t"}),
    "clickhouse": (ClickhouseSink, {"table": "t"}),
    "mongodb": (MongodbSink, {"collection": "c"}),
    "opensearch": (OpensearchSink, {"index": "i"}),
    "influxdb": (InfluxdbSink, {"database": "d", "measurement": "m"}),
}
STORES: dict[str, Any] = {"files": FilesSink, "delta": DeltaSink}
NAMES = (*SERVERS, "iceberg", *STORES)


def sink(name: str, address: str, ca: Path | None) -> Any:
    """Returns a sink at an address with TLS, by default with the system's CA certificates."""
    tls: Any = {"ca": str(ca)} if ca else True
    if name in STORES:
        component, storage = STORES[name], {"endpoint_url": f"https://{address}", "auth": KEYS}
        options = {"path": "s3://bucket/t", "storage": {**storage, **({"tls": tls} if ca else {})}}
    elif name == "iceberg":
        catalog = {
            "type": "rest",
            "url": f"https://{address}",
            "tls": tls,
            "auth": {"token": SECRET},
        }
        component, options = IcebergSink, {"catalog": catalog, "table": "n.t"}
    else:
        component, given = SERVERS[name]
        is_http = name in ("opensearch", "influxdb")
        url = f"https://{address}" if is_http else f"{name}://{address}/shop"
        once = {"retry": {"attempts": 1}} if is_http else {}
        options = {**given, **AUTH, **once, "url": url, "tls": tls, "timeout": "1s"}
    made = component.create(component.config_type.model_validate(options))
    made.format = Json(JsonConfig()) if name in ("files", "opensearch") else None
    return made


@pytest.mark.parametrize("name", NAMES)
def test_certificates_of_databases(name: str, tmp_path: Path) -> None:
    """A certificate that is not trusted ends the query; a lost connection is tried again."""
    authority = Authority(tmp_path)
    ca = None if name == "delta" else authority.root
    cases: list[tuple[str, Path | None, Path | None, type[Exception]]] = [
        ("127.0.0.1", authority.issue("server"), None, Permanent),
        ("127.0.0.1", None, ca, Transient),
    ]
    if ca is not None:
        cases.append(("127.0.0.2", authority.issue("server"), ca, Permanent))
    for host, certificate, trusted, kind in cases:
        with (
            tls_listener(certificate, asks=name == "postgresql") as port,
            pytest.raises(kind) as found,
        ):
            sink(name, f"{host}:{port}", trusted).check()
        error: Any = found.value
        assert (error.code == "tls") == (kind is Permanent) and error.hint
        assert SECRET not in f"{error} {error.detail} {error.hint}"

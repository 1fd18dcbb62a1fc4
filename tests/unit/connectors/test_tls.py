"""TLS of connectors: wrong certificates, certificates for other names, and lost connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import Permanent, Transient
from penstock.formats.json import Json, JsonConfig
from penstock.sdk import Capability, registry
from servers.certificates import Authority
from tls_listener import tls_listener

SECRET = "made-up-password"
AUTH = {"auth": {"username": "made-up-user", "password": SECRET}}
KEYS = {"auth": {"access_key": "made-up-key", "secret_key": SECRET}}
ONCE = {"retry": {"attempts": 1}}
SINKS: dict[str, dict[str, Any]] = {
    "postgres": {**AUTH, "url": "postgresql://{}/shop", "table": "t"},
    "clickhouse": {**AUTH, "url": "clickhouse://{}/shop", "table": "t"},
    "mongodb": {**AUTH, "url": "mongodb://{}/shop", "collection": "c"},
    "opensearch": {**AUTH, **ONCE, "url": "https://{}/shop", "index": "i"},
    "influxdb": {**AUTH, **ONCE, "url": "https://{}", "database": "d", "measurement": "m"},
    "mqtt": {**AUTH, "url": "mqtts://{}", "topic": "t"},
    "rabbitmq": {**AUTH, "url": "amqps://{}", "routing_key": "q"},
    "redis": {**AUTH, "url": "rediss://{}", "list": "l"},
    "http": {**AUTH, **ONCE, "url": "https://{}/"},
    "websocket": {**AUTH, "url": "wss://{}/"},
    "tcp": {"connect": "{}"},
    "kafka": {"brokers": "{}", "topic": "t"},
    "pulsar": {"auth": {"token": SECRET}, "url": "pulsar+ssl://{}", "topic": "t"},
    "sqs": {**KEYS, **ONCE, "endpoint_url": "https://{}", "queue": "q"},
    "kinesis": {**KEYS, **ONCE, "endpoint_url": "https://{}", "stream": "s"},
}
STORES = ("files", "delta")
SLOW = ("files", "kafka", "mongodb")
NAMES = [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
    for name in (*SINKS, "iceberg", *STORES)
]


def sink(name: str, address: str, ca: Path | None) -> Any:
    """Returns a sink at an address with TLS, by default with the system's CA certificates."""
    tls: Any = {"ca": str(ca)} if ca else True
    if name in STORES:
        storage = {"endpoint_url": f"https://{address}", **KEYS, **({"tls": tls} if ca else {})}
        options: dict[str, Any] = {"path": "s3://bucket/t", "storage": storage}
    elif name == "iceberg":
        catalog = {
            "type": "rest",
            "url": f"https://{address}",
            "tls": tls,
            "auth": {"token": SECRET},
        }
        options = {"catalog": catalog, "table": "n.t"}
    else:
        options = {
            option: value.format(address) if isinstance(value, str) else value
            for option, value in {"tls": tls, **SINKS[name]}.items()
        }
    component: Any = registry.find("sink", name)
    if "timeout" in component.config_type.model_fields:
        options["timeout"] = "1s"
    made = component.create(component.config_type.model_validate(options))
    if name == "files" or Capability.BYTES in made.capabilities:
        made.format = Json(JsonConfig())
    return made


@pytest.mark.parametrize("name", NAMES)
def test_certificates(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that is not trusted ends the query; a lost connection is tried again."""
    monkeypatch.setattr("penstock.connectors.kafka.client.RESPONSE_TIMEOUT", 1.0)
    authority = Authority(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(Authority(tmp_path, "Others").root))
    ca = None if name == "delta" else authority.root
    cases: list[tuple[str, Path | None, Path | None, type[Exception], str]] = [
        ("127.0.0.1", authority.issue("server"), None, Permanent, "CA certificate file"),
        ("127.0.0.1", None, ca, Transient, ""),
    ]
    if ca is not None:
        cases.append(("127.0.0.2", authority.issue("server"), ca, Permanent, "host name"))
    for host, certificate, trusted, kind, hint in cases:
        with (
            tls_listener(certificate, asks=name == "postgres") as port,
            pytest.raises(kind) as found,
        ):
            sink(name, f"{host}:{port}", trusted).check()
        error: Any = found.value
        assert (error.code == "tls") == (kind is Permanent) and hint in error.hint
        assert SECRET not in f"{error} {error.detail} {error.hint}"

"""Connections of Streamling's settings as options of sources and sinks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from penstock.spec.dialects.options.trees import Tree
from penstock.spec.dialects.streamling.settings import Settings

JSON: Mapping[str, Tree] = {
    "type": "json", "nulls": "keep", "timestamp_zone": "none", "not_finite": "null",
}  # fmt: skip
"""The format of JSON: explicit nulls, also for NaN and infinity, and times without a zone."""
WRITTEN: Mapping[str, Tree] = {**JSON, "binary": "hex"}
"""The format of sinks. Responses of requests have base64, as Penstock reads it."""
_TLS: Mapping[str, Tree] = {
    "disable": None, "allow": None, "prefer": None,
    "require": {"verify": False, "verify_hostname": False},
    "verify-ca": {"verify_hostname": False}, "verify-full": True,
}  # fmt: skip


def kafka(settings: Settings, section: str) -> dict[str, Tree]:
    """Returns the connection to Kafka of `kafka_source` or `kafka_sink`."""
    protocol = settings.text(f"{section}.security_protocol", "plaintext").lower()
    auth = {
        "mechanism": settings.text(f"{section}.sasl_mechanism", "PLAIN").upper(),
        "username": settings.written(f"{section}.sasl_username") or None,
        "password": settings.secret(f"{section}.sasl_password"),
    }
    client = settings.written(f"{section}.client_id")
    return {
        "brokers": settings.written(f"{section}.brokers", "localhost:9092"),
        "tls": True if "ssl" in protocol.replace("sasl", "") else None,
        "auth": auth if "sasl" in protocol else None,
        "properties": {"client.id": client} if client else None,
    }


def registry(settings: Settings, section: str) -> dict[str, Tree]:
    """Returns the schema registry of `kafka_source` or `kafka_sink`."""
    user = settings.written(f"{section}.schema_registry_username")
    password = settings.secret(f"{section}.schema_registry_password")
    return {
        "url": settings.written(f"{section}.schema_registry_url", "http://localhost:18081"),
        "auth": {"username": user, "password": password} if user else None,
    }


def clickhouse(settings: Settings, section: str) -> dict[str, Tree]:
    """Returns the connection to ClickHouse of `clickhouse_source` or `clickhouse_sink`."""
    url = settings.text(f"{section}.url", "http://localhost:8123")
    scheme, _, rest = url.partition("://")
    address = rest.rstrip("/").split("/")[0] if rest else url
    database = settings.written(f"{section}.database", "default")
    return {
        "url": f"clickhouse://{address}/{database}",
        "tls": True if scheme == "https" else None,
        "auth": {
            "username": settings.written(f"{section}.user", "default"),
            "password": settings.secret(f"{section}.password") or "",
        },
    }


def postgres_sink(settings: Settings, name: str) -> dict[str, Tree]:
    """Returns the connection to PostgreSQL of a sink: its own settings, or those of all sinks."""
    own = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    sections = (f"postgres_sink_connections.{own}", "postgres_sink")
    return _postgres(settings, sections, "pass", _Defaults("127.0.0.1", "postgres", "disable"))


def postgres_tables(settings: Settings) -> dict[str, Tree]:
    """Returns the connection to PostgreSQL of dynamic tables."""
    sections = ("dynamic_table_backend.postgres",)
    defaults = _Defaults("localhost", "streamling", "require")
    return _postgres(settings, sections, "password", defaults)


class _Defaults:
    def __init__(self, host: str, db: str, sslmode: str) -> None:
        self.host, self.db, self.sslmode = host, db, sslmode


def _postgres(
    settings: Settings, sections: tuple[str, ...], password: str, defaults: _Defaults
) -> dict[str, Tree]:
    def written(option: str, default: str) -> str:
        return next(
            (settings.written(path) for s in sections if settings.find(path := f"{s}.{option}")),
            default,
        )

    paths = [f"{section}.sslmode" for section in sections]
    mode = next((settings.text(p) for p in paths if settings.find(p)), defaults.sslmode)
    host, port = written("host", defaults.host), written("port", "5432")
    name = written("db", defaults.db)
    secrets = (settings.secret(f"{section}.{password}") for section in sections)
    secret: Tree = next((each for each in secrets if each is not None), "")
    return {
        "url": f"postgresql://{host}:{port}/{database(name)}",
        "tls": _TLS.get(mode.lower(), True),
        "auth": {"username": written("user", "graph-node"), "password": secret},
    }


def database(name: str) -> str:
    """Returns the name of a database in a URL. A variable stays as it is."""
    return name if name.startswith("${") else quote(name)

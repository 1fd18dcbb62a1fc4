"""Answers of Arroyo's web API: connection tables as statements, connection profiles as YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import SpecError
from penstock.spec.dialects.arroyo.exports import is_export, to_text
from penstock.spec.documents.reading import load

KAFKA = {
    "id": "cp_1", "name": "shop", "connector": "kafka", "description": "SASL",
    "config": {
        "bootstrapServers": "k1:9092,k2:9092",
        "authentication": {
            "protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u",
            "password": "{{ SHOP_PASSWORD }}",
        },
        "schemaRegistryEnum": {"endpoint": "http://r:8081", "apiKey": "K", "apiSecret": "S"},
        "connectionProperties": {"client.id": "shop"},
    },
}  # fmt: skip
REDIS = {
    "name": "cache", "connector": "redis",
    "config": {"connection": {"addresses": ["redis://a:1", "redis://b:2"]}, "password": None},
}  # fmt: skip
JSON = {"type": "json", "debezium": False, "unstructured": False, "decimal_encoding": "number"}
TABLES: list[dict[str, Any]] = [
    {
        "name": "Orders", "connector": "kafka", "connection_profile": KAFKA, "table_type": "source",
        "config": {
            "topic": "Orders", "type": {"offset": "earliest", "read_mode": "read_committed"},
            "client_configs": {"fetch.min.bytes": "1"},
        },
        "schema": {
            "format": {**JSON, "confluent_schema_registry": True, "schema_id": 3},
            "bad_data": {"behavior": "drop"}, "framing": None,
            "fields": [
                {"name": "id", "type": "int64", "required": True},
                {"name": "price", "type": "decimal128", "precision": 10, "scale": 2},
                {"name": "at", "type": "timestamp", "unit": "nanosecond"},
                {"name": "tags", "type": "list", "items": {"name": "item", "type": "string"}},
                {"name": "who", "type": "struct", "fields": [{"name": "a b", "type": "bool"}]},
                {"name": "place", "type": "int64", "metadata_key": "offset_id"},
            ],
        },
    },
    {
        "name": "sums", "connector": "redis", "connection_profile": REDIS, "table_type": "sink",
        "config": {
            "connectorType": {"target": {"listPrefix": "p:", "operation": "Append"}},
        },
        "schema": {"format": JSON, "fields": [{"name": "id", "type": "string"}]},
    },
    {
        "name": "lake", "connector": "filesystem", "table_type": "sink",
        "config": {"table_type": {
            "type": "sink", "path": "out", "storage_options": {"aws_region": "eu-west-1"},
            "rolling_policy": {"interval_seconds": 60, "file_size_bytes": 1000},
            "file_naming": {"prefix": "a"}, "partitioning": {"fields": ["day"]}, "version": "v2",
        }},
        "schema": {
            "format": {"type": "parquet", "compression": "zstd"},
            "fields": [{"name": "id", "type": "int64"}, {"name": "day", "type": "string"}],
        },
    },
    {
        "name": "news", "connector": "nats", "table_type": "source",
        "connection_profile": {"name": "n", "connector": "nats", "config": {
            "servers": "a:4222", "authentication": {"jwt": "J", "nkeySeed": "N"},
        }},
        "config": {"connectorType": {"sourceType": {
            "stream": "S", "ackPolicy": "Explicit", "filterSubjects": ["x.>", "y"],
        }}},
        "schema": {
            "format": {"type": "json", "unstructured": True},
            "framing": {"method": "newline", "max_line_length": 100},
            "fields": [{"name": "value", "type": "json"}],
        },
    },
    {
        "name": "quotes", "connector": "websocket", "table_type": "source",
        "config": {"endpoint": "wss://h", "subscription_messages": ["a", "it's"]},
        "schema": {"format": JSON, "fields": [{"name": "a", "type": "float64"}]},
    },
]  # fmt: skip
QUERIES = """
SELECT id, at FROM "Orders"; SELECT value FROM news; SELECT a FROM quotes;
INSERT INTO sums SELECT tags[1] FROM "Orders"; INSERT INTO lake SELECT id, 'x' FROM "Orders";
"""


def written(tmp_path: Path, data: object) -> str:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(data))
    assert is_export(str(path))
    return str(path)


def test_tables_are_statements(tmp_path: Path) -> None:
    text = to_text(written(tmp_path, {"data": TABLES, "has_more": False}))
    (tmp_path / "script.sql").write_text(text + QUERIES)
    root = load([tmp_path / "script.sql"], env={"SHOP_PASSWORD": "secret"}).root.data()
    orders = root["sources"]["Orders"]
    assert orders["schema"] == {
        "id": "BIGINT NOT NULL", "price": "DECIMAL(10, 2)", "at": "TIMESTAMP",
        "tags": "ARRAY<STRING>", "who": "STRUCT<`a b` BOOLEAN>",
    }  # fmt: skip
    assert (orders["brokers"], orders["topic"]) == ("k1:9092,k2:9092", "Orders")
    assert (orders["start"], orders["isolation"]) == ("earliest", "committed")
    assert orders["auth"] == {"mechanism": "PLAIN", "username": "u", "password": "secret"}
    assert orders["properties"] == {"client.id": "shop", "fetch.min.bytes": "1"}
    assert orders["format"]["registry"]["url"] == "http://r:8081"
    assert orders["metadata"] == {"place": "offset"}
    sums = root["sinks"]["sums"]
    assert (sums["url"], sums["cluster"]) == (["redis://a:1", "redis://b:2"], True)
    assert (sums["list"], sums["side"]) == ("p:", "right")
    lake = root["sinks"]["lake"]
    assert lake["partition_by"] == ["day"]
    assert lake["roll"] == {"interval": "60 seconds", "max_size": "1000"}
    news = root["sources"]["news"]
    assert (news["stream"], news["subject"]) == ("S", ["x.>", "y"])
    assert news["auth"] == {"jwt": "J", "nkey": "N"}
    assert root["sources"]["quotes"]["messages"] == ["a", "it's"]


def test_profiles_are_connections(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(to_text(written(tmp_path, {"data": [KAFKA, REDIS]})))
    (tmp_path / "s.sql").write_text(
        "CREATE TABLE a (b INT) WITH (connector = 'kafka', connection_profile = 'shop', "
        "topic = 't', format = 'json', type = 'source');\nSELECT b FROM a;\n"
    )
    files = [tmp_path / "s.sql", tmp_path / "c.yaml"]
    root = load(files, env={"SHOP_PASSWORD": "secret"}).root.data()
    assert root["connections"]["cache"]["url"] == ["redis://a:1", "redis://b:2"]
    source = root["sources"]["a"]
    assert (source["brokers"], source["topic"]) == ("k1:9092,k2:9092", "t")
    assert source["auth"]["password"] == "secret"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"nats"', '"fluvio"', 'the connector "fluvio" of Arroyo has no counterpart'),
        ('"float64"', '"float46"', 'unknown type "float46"'),
        ('"table_type": "source"', '"table_typ": "source"', 'expected "table_type", a text'),
    ],
)
def test_errors(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = Path(written(tmp_path, {"data": TABLES}))
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(SpecError) as failed:
        to_text(str(path))
    assert failed.value.message == message
    assert failed.value.where is not None


def test_other_files_are_no_exports(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"producers": {}}')
    (tmp_path / "a.yaml").write_text('{"connector": 1, "config": 2}')
    assert not is_export(str(tmp_path / "a.json"))
    assert not is_export(str(tmp_path / "a.yaml"))
    assert not is_export(str(tmp_path / "none.json"))

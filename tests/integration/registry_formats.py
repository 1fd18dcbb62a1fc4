"""Formats with a registry, made as the planner makes them, and Confluent's own serializers."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from confluent_kafka.schema_registry import topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from penstock.sdk import Context, registry
from penstock.sdk.schema_registry import RegistryFormat
from servers.apicurio import Apicurio

BY_TOPIC = {"subject.name.strategy": topic_subject_name_strategy}
"""So that Confluent's serializers do not ask for what only Confluent's registry knows."""
UNKNOWN = 1_000_000
"""The id of no schema."""
ID = pa.field("id", pa.int64(), nullable=False)


def formatted(
    kind: str, url: str | Apicurio, subject: str | None, *, topic: str | None = None, **options: Any
) -> Any:
    """The format; `registry` are options of the registry beside its URL and subject."""
    given = {"url": url.url if isinstance(url, Apicurio) else url, **options.pop("registry", {})}
    if subject is not None:
        given["subject"] = subject
    found = registry.find("format", kind)
    config = found.config_type.model_validate({"registry": given, **options})
    made = found.create(config, Context("tests", "node", topic=topic))
    assert isinstance(made, RegistryFormat)
    made.validate()
    return made


def record(*fields: dict[str, Any], name: str = "order") -> dict[str, Any]:
    """An Avro record of these fields and an id."""
    return {"type": "record", "name": name, "fields": [{"name": "id", "type": "long"}, *fields]}


def optional(name: str, type_: str = "string", **more: Any) -> dict[str, Any]:
    """An Avro field that may be null."""
    return {"name": name, "type": ["null", type_], "default": None, **more}


def context(subject: str) -> SerializationContext:
    """What Confluent's serializers take `subject` from."""
    return SerializationContext(subject.removesuffix("-value"), MessageField.VALUE)


def written(apicurio: Apicurio, subject: str, schema: Any, *values: Any) -> list[bytes]:
    """Payloads of Confluent's serializer, which registers an Avro schema."""
    serialize = AvroSerializer(apicurio.client, json.dumps(schema), conf=BY_TOPIC)
    return [serialize(value, context(subject)) for value in values]


def written_json(apicurio: Apicurio, subject: str, schema: Any, *values: Any) -> list[bytes]:
    """The same with a JSON Schema."""
    serialize = JSONSerializer(json.dumps(schema), apicurio.client, conf=BY_TOPIC)
    return [serialize(value, context(subject)) for value in values]


def renamed(payload: bytes, id_: int) -> bytes:
    """A payload that says it was written by another schema."""
    return payload[:1] + id_.to_bytes(4, "big") + payload[5:]


def read(apicurio: Apicurio, subject: str, payloads: Any) -> list[Any]:
    """What Confluent's deserializer makes of Avro payloads."""
    deserialize = AvroDeserializer(apicurio.client, conf=BY_TOPIC)
    return [deserialize(each, context(subject)) for each in payloads.to_pylist()]


def read_json(apicurio: Apicurio, subject: str, payloads: Any) -> list[Any]:
    """The same of JSON payloads, which it validates."""
    client = apicurio.client
    deserialize = JSONDeserializer(None, schema_registry_client=client, conf=BY_TOPIC)
    return [deserialize(each, context(subject)) for each in payloads.to_pylist()]


def payloads(*values: bytes | None) -> pa.BinaryArray:
    """An array of payloads."""
    return pa.array(values, pa.binary())


def failure_codes(decoded: Any) -> list[tuple[int, str]]:
    """Returns the index and the code of each failure."""
    return [(each.index, each.error.code) for each in decoded.failures]


def batch(rows: list[dict[str, Any]], *fields: Any) -> pa.RecordBatch:
    """Rows of these columns."""
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema([ID, *fields]))

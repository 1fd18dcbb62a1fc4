"""Debezium: change events as JSON or Avro, with the row before and after."""

from __future__ import annotations

from penstock.formats.debezium.avro import DebeziumAvro, DebeziumAvroConfig
from penstock.formats.debezium.json import DebeziumJson, DebeziumJsonConfig

__all__ = ["DebeziumAvro", "DebeziumAvroConfig", "DebeziumJson", "DebeziumJsonConfig"]

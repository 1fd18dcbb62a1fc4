"""The contract of Kafka with payloads whose schemas are in a registry."""

from __future__ import annotations

from typing import Any

import pytest
import test_kafka

from penstock.core.errors import PlanError
from penstock.sdk import Context, Format, registry
from penstock.testing.contract.rows import SPECIAL_NAMES, make_special_names
from servers.apicurio import Apicurio
from servers.kafka import Kafka
from servers.kafka_security import PASSWORD

broker = test_kafka.broker


class InRegistry:
    """Avro with schemas of a registry."""

    format = "avro"
    payload_kind = "rows"

    @pytest.fixture
    def options(self, broker: Kafka, topic: str, apicurio: Apicurio) -> dict[str, Any]:
        self.given = {"registry": {"url": apicurio.url, "subject": f"{topic}-value"}}
        return {"brokers": broker.address, "topic": topic, **test_kafka.login(PASSWORD)}

    def create_format(self) -> Format[Any]:
        found = registry.find("format", "avro")
        made = found.create(found.config_type.model_validate(self.given), Context())
        assert isinstance(made, Format)
        return made

    def test_special_column_names(self) -> None:
        with pytest.raises(PlanError, match="not a name in Avro"):
            self.encode(make_special_names(), SPECIAL_NAMES)

    def create_node(self, options: dict[str, Any]) -> dict[str, Any]:
        node: dict[str, Any] = super().create_node(options)  # type: ignore[misc]
        return {**node, "format": {"type": "avro", **self.given}}


class TestKafkaSourceInRegistry(InRegistry, test_kafka.TestKafkaSource):
    pass


class TestKafkaSinkInRegistry(InRegistry, test_kafka.TestKafkaSink):
    pass

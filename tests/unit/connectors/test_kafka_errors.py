"""Errors that a Kafka client reports outside of calls."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from penstock.connectors.kafka.errors import ErrorTracker, translate_error
from penstock.core.errors import Permanent, Transient


def missing(partition: str) -> KafkaError:
    """The error of librdkafka for an assigned partition whose topic was deleted."""
    text = f"{partition}: topic does not exist (Broker: Unknown topic or partition)"
    return KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, text)


def test_a_partition_of_an_earlier_read_does_not_fail_this_one() -> None:
    tracker = ErrorTracker("localhost:1")
    tracker.partitions = {"orders [1]", "orders.eu [0]"}
    for other in ("clicks [1]", "orders [0]", "orders [11]", "orders.eu [1]"):
        tracker.add(missing(other))
    tracker.raise_permanent("read orders [1]")
    assert tracker.last is None


@pytest.mark.parametrize("partitions", [None, {"orders [1]"}])
def test_a_partition_in_use_that_does_not_exist(partitions: set[str] | None) -> None:
    tracker = ErrorTracker("localhost:1")
    tracker.partitions = partitions
    tracker.add(missing("orders [1]"))
    with pytest.raises(Permanent, match=r"cannot read orders \[1\]: .*topic does not exist"):
        tracker.raise_permanent("read orders [1]")


def test_errors_of_the_connection_are_those_of_every_read() -> None:
    tracker = ErrorTracker("localhost:1")
    tracker.partitions = {"orders [1]"}
    tracker.add(KafkaError(KafkaError._AUTHENTICATION, "invalid credentials"))
    with pytest.raises(Permanent) as caught:
        tracker.raise_permanent("read orders [1]")
    assert caught.value.code == "authentication"


@pytest.mark.parametrize("cause", ["Broker transport failure", "Timed out"])
def test_a_connection_that_is_lost_during_the_handshake_is_not_an_authentication_error(
    cause: str,
) -> None:
    text = f"SASL OAUTHBEARER mechanism handshake failed: Local: {cause}: broker's supported"
    error = KafkaError(KafkaError._AUTHENTICATION, f"{text} mechanisms: (n/a)")
    tracker = ErrorTracker("localhost:1")
    tracker.add(error)
    tracker.raise_permanent("read orders [1]")
    assert tracker.disconnected
    assert isinstance(translate_error(error, "read orders [1]", tracker), Transient)

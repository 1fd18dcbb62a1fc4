"""The consumer of the NATS source of Arroyo: its settings, which a source without one ignores."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.spec.script.arroyo.keys import Key, Rules, Unsupported, split_list, with_unit
from penstock.spec.script.options import Option

_SETTINGS: Rules = {
    "consumer.description": Key("consumer_settings.description"),
    "consumer.ack_wait": Key("consumer_settings.ack_wait", convert=with_unit("seconds")),
    "consumer.max_deliver": Key("consumer_settings.max_deliver"),
    "consumer.max_ack_pending": Key("consumer_settings.max_ack_pending"),
    "consumer.num_replicas": Key("consumer_settings.num_replicas"),
    "consumer.inactive_threshold": Key(
        "consumer_settings.inactive_threshold", convert=with_unit("seconds")
    ),
}
CONSUMER: Rules = {
    **_SETTINGS,
    "consumer.ack_policy": Key("", {"explicit": "", "all": "", "none": ""}),
    "consumer.replay_policy": Key("", {"instant": "", "original": Unsupported(
        "set it to 'instant'", "messages are read as fast as possible",
    )}),
    "consumer.filter_subjects": Key("subject", convert=split_list),
    "consumer.rate_limit": Unsupported(
        "limit the messages of a batch with max_records", "the rate in bits is not limited"
    ),
    "consumer.sample_frequency": Key(),
    "consumer.max_waiting": Key(),
    "consumer.max_batch": Key(),
    "consumer.max_bytes": Key(),
    "consumer.max_expires": Key(),
}  # fmt: skip
"""The options of consumers. Those of requests and acknowledgements have no effect."""


def combine_consumer(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options without settings of a consumer if messages are read without one."""
    names = {option.name for option in options}
    if names & {"consumer", "group"}:
        return list(options)
    return [option for option in options if option.name not in _SETTINGS]

"""Options of Arroyo that together become one option of Penstock: groups, clients, URLs, targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.spec.dialects.arroyo.option_rules import (
    Key,
    Rules,
    Unsupported,
    is_true,
    split_list,
    with_unit,
)
from penstock.spec.script.options import Option
from penstock.spec.tree.nodes import ScalarNode

_CLIENT = "client_prefix"
_GROUP, _GROUP_PREFIX = "source.group_id", "source.group_id_prefix"
_STREAM_PORTS = ("5552", "5551")
"""The ports of the stream protocol. The ports of AMQP are those of the URL's scheme."""
_TLS = "tls_config."
_TARGETS = {"string": "key", "list": "list", "hash": "hash"}
_KEY_PREFIX, _KEY_COLUMN = "target.key_prefix", "target.key_column"
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


def _with_table(option: Option, table: str) -> Option:
    """Returns an option with the value `PREFIX-TABLE`."""
    node = option.value
    if not isinstance(node, ScalarNode):
        return option
    text = f"{node.written}-{table}"
    value = replace(node, value=text, written=text, text=text, plain=False, span=None)
    return replace(option, value=value)


def combine_client(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options with a client of MQTT for each table, which have sessions of their own.

    A broker disconnects a client if another one connects with the same identifier.
    """
    return [_with_table(each, table) if each.name == _CLIENT else each for each in options]


def combine_kafka(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options with a group in place of its prefix, and with TLS for AWS_MSK_IAM."""
    return _with_tls(_with_group(options, table))


def _with_tls(options: list[Option]) -> list[Option]:
    named = {option.name: option for option in options}
    auth = named.get("auth.type")
    if (
        auth is None
        or not isinstance(auth.value, ScalarNode)
        or auth.value.written != "aws_msk_iam"
    ):
        return options
    if "auth.protocol" in named or any(name.partition(".")[0] == "tls" for name in named):
        return options
    value = replace(auth.value, value=True, written="true", text="true", plain=True, span=None)
    return [*options, Option([auth.path[0]._replace(value="tls")], value)]


def _with_group(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options with the group `PREFIX-TABLE` in place of its prefix."""
    named = {option.name: option for option in options}
    prefix = named.get(_GROUP_PREFIX)
    if prefix is None or not isinstance(prefix.value, ScalarNode):
        return list(options)
    if named.keys() & {_GROUP, "group"}:
        return [option for option in options if option is not prefix]
    path = [prefix.path[0], prefix.path[-1]._replace(value="group_id")]
    group = replace(_with_table(prefix, table), path=path)
    return [group if option is prefix else option for option in options]


def combine_url(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options with a URL in place of the host, the default port and TLS."""
    named = {option.name: option for option in options if isinstance(option.value, ScalarNode)}
    host, port, enabled = (named.get(name) for name in ("host", "port", f"{_TLS}enabled"))
    first = host or port or enabled or named.get("stream")
    if named.keys() & {"url", "connection"} or first is None:
        return list(options)
    is_secure = enabled is not None and is_true(_written(enabled))
    value = f"{'amqps' if is_secure else 'amqp'}://{_written(host) if host else 'localhost'}"
    assert isinstance(first.value, ScalarNode)
    node = replace(first.value, value=value, written=value, text=value, plain=False, span=None)
    kept = [
        option
        for option in options
        if option is not host
        and option is not enabled
        and not (option is port and _written(option) in _STREAM_PORTS)
        and (is_secure or not option.name.startswith(_TLS))
    ]
    return [Option([first.path[0]._replace(value="url")], node), *kept]


def _written(option: Option) -> str:
    assert isinstance(option.value, ScalarNode)
    return option.value.written.strip()


def combine_target(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options with one template for the target, its prefix and its column."""
    named = {option.name: option for option in options if isinstance(option.value, ScalarNode)}
    target, prefix = named.get("target"), named.get(_KEY_PREFIX)
    if target is None or prefix is None:
        return list(options)
    name = _TARGETS.get(str(_scalar(target).value))
    if name is None:
        return list(options)
    node = _scalar(prefix)
    column = named.get(_KEY_COLUMN)
    text = node.written + (f"{{{_scalar(column).value}}}" if column is not None else "")
    value = replace(node, value=text, written=text, text=text, span=None)
    combined = Option([prefix.path[0]._replace(value=name)], value)
    used = ("target", _KEY_PREFIX, _KEY_COLUMN)
    return [combined, *(option for option in options if option.name not in used)]


def _scalar(option: Option) -> ScalarNode:
    assert isinstance(option.value, ScalarNode)
    return option.value


def combine_runtime(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options with `rows` in place of `runtime`, if both numbers are known."""
    named = {option.name: option for option in options}
    rate, runtime = _number(named.get("event_rate")), _number(named.get("runtime"))
    if rate is None or runtime is None or "rows" in named:
        return list(options)
    option = named["runtime"]
    assert isinstance(option.value, ScalarNode)
    rows = max(round(rate * runtime), 1)
    value = replace(option.value, value=rows, written=str(rows), text=str(rows), span=None)
    limit = Option([option.path[0]._replace(value="rows")], value)
    return [limit if each is option else each for each in options]


def _number(option: Option | None) -> float | None:
    if option is None or not isinstance(option.value, ScalarNode):
        return None
    try:
        return float(option.value.written)
    except ValueError:
        return None


def combine_consumer(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options without settings of a consumer if messages are read without one."""
    names = {option.name for option in options}
    if names & {"consumer", "group"}:
        return list(options)
    return [option for option in options if option.name not in _SETTINGS]

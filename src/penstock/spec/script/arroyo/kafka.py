"""The consumer group and TLS of Kafka of Arroyo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.spec.script.arroyo.prefixes import with_table
from penstock.spec.script.options import Option
from penstock.spec.tree.nodes import ScalarNode

_GROUP, _PREFIX = "source.group_id", "source.group_id_prefix"


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
    prefix = named.get(_PREFIX)
    if prefix is None or not isinstance(prefix.value, ScalarNode):
        return list(options)
    if named.keys() & {_GROUP, "group"}:
        return [option for option in options if option is not prefix]
    path = [prefix.path[0], prefix.path[-1]._replace(value="group_id")]
    group = replace(with_table(prefix, table), path=path)
    return [group if option is prefix else option for option in options]

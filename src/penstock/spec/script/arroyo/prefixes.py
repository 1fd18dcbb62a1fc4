"""Prefix options of Arroyo, to which the name of the table is appended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.spec.script.options import Option
from penstock.spec.tree.nodes import ScalarNode

_CLIENT = "client_prefix"


def with_table(option: Option, table: str) -> Option:
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
    return [with_table(each, table) if each.name == _CLIENT else each for each in options]

"""The target of the Redis sink of Arroyo: a template of Penstock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.spec.script.options import Option
from penstock.spec.tree.nodes import ScalarNode

_TARGETS = {"string": "key", "list": "list", "hash": "hash"}
_PREFIX, _COLUMN = "target.key_prefix", "target.key_column"


def combine_target(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options with one template for the target, its prefix and its column."""
    named = {option.name: option for option in options if isinstance(option.value, ScalarNode)}
    target, prefix = named.get("target"), named.get(_PREFIX)
    if target is None or prefix is None:
        return list(options)
    name = _TARGETS.get(str(_scalar(target).value))
    if name is None:
        return list(options)
    node = _scalar(prefix)
    column = named.get(_COLUMN)
    text = node.written + (f"{{{_scalar(column).value}}}" if column is not None else "")
    value = replace(node, value=text, written=text, text=text, span=None)
    combined = Option([prefix.path[0]._replace(value=name)], value)
    used = ("target", _PREFIX, _COLUMN)
    return [combined, *(option for option in options if option.name not in used)]


def _scalar(option: Option) -> ScalarNode:
    assert isinstance(option.value, ScalarNode)
    return option.value

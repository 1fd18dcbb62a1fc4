"""The duration of the Nexmark source of Arroyo: a number of events of Penstock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.spec.script.options import Option
from penstock.spec.tree.nodes import ScalarNode


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

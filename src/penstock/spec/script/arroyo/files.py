"""The files of Arroyo: their pattern, and the conditions under which a sink closes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.core.units import seconds
from penstock.spec.script.arroyo.keys import Value
from penstock.spec.script.arroyo.object_store import combine_path
from penstock.spec.script.options import Option
from penstock.spec.tree.nodes import ScalarNode

EVENT_TIME = "_timestamp"
"""The column of the event time, which the rows of Arroyo have in addition to their columns."""
PARTITION_TIME = "_partition_time"
"""The column of the event time that names the directories of a sink. It is not stored."""
TIME_PATTERN = "partitioning.time_pattern"
_PATTERN = "source.regex_pattern"
_INTERVAL, _INACTIVITY = "rolling_policy.interval", "rolling_policy.inactivity_interval"


def combine_files(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options with a URL, and with the shorter one of two intervals.

    A file that is visible after an interval is visible after the same time without rows, too.
    """
    options = [_with_backslashes(option) for option in combine_path(options, table)]
    named = {option.name: option for option in options}
    interval, inactivity = named.get(_INTERVAL), named.get(_INACTIVITY)
    if inactivity is None:
        return options
    others = [option for option in options if option not in (interval, inactivity)]
    shortest = min(filter(None, (interval, inactivity)), key=_seconds)
    path = [shortest.path[0], shortest.path[-1]._replace(value="interval")]
    return [*others, replace(shortest, path=path)]


def has_time_pattern(options: Sequence[Option]) -> bool:
    """Returns whether the directories of a sink depend on the event time."""
    return any(option.name == TIME_PATTERN for option in options)


def suffix_of(extension: str) -> Value:
    """Returns the suffix of files with an extension, which Arroyo writes without its dot."""
    return f".{extension.strip().removeprefix('.')}"


def _with_backslashes(option: Option) -> Option:
    """Returns a regular expression as it is written: a backslash in a text begins no escape."""
    node = option.value
    if option.name != _PATTERN or not isinstance(node, ScalarNode) or node.span is None:
        return option
    written = node.span.file.text[node.span.start : node.span.end]
    text = written.strip("'").replace("''", "'")
    if "\\" not in text or "{{" in written:
        return option
    return replace(option, value=replace(node, value=text, written=text, text=text, span=None))


def _seconds(option: Option) -> float:
    try:
        return seconds(option.value.written) if isinstance(option.value, ScalarNode) else 0.0
    except ValueError:
        return 0.0

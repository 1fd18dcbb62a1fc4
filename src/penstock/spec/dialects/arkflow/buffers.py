"""Buffers as windows of the transform `steps`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.text import did_you_mean
from penstock.spec.dialects.arkflow.codecs import read_codec
from penstock.spec.dialects.arkflow.plans import InputPlan
from penstock.spec.dialects.options.declarations import Option, Options, options, unneeded
from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.tree.nodes import Node, ScalarNode
from penstock.sql.datafusion.table_names import plain_tables

_THREADS = "Spark divides the work"
_JOIN = options(
    "query! = the query of a window",
    Option("codec", "any", True),
    "value_field",
    unneeded("thread_num", _THREADS),
)
BUFFERS: dict[str, Options] = {
    "memory": options(
        "type!",
        "name",
        "capacity!:positive = rows of a batch",
        "timeout! = `batch.interval` of the sink, with `batch.min_records`",
    ),
    "tumbling_window": options(
        "type!",
        "name",
        "interval = `batch.interval` of the sink",
        "size = `batch.interval` of the sink",
        "join:map",
    ),
    "session_window": options("type!", "name", "gap! = `batch.gap` of the sink", "join:map"),
    "sliding_window": options(
        "type!",
        "name",
        "window_size:positive",
        "slide_size:positive",
        "size:positive",
        "slide:positive",
        "interval = `batch.interval` of the sink",
        Option("join", "any", unsupported="ArkFlow has no such join"),
    ),
}
"""The buffers and their options."""


@dataclass
class BufferPlan:
    """A buffer: the window of the transform, and the time of a window in seconds.

    With `is_whole` its windows span all batches of an input that ends. `gap` is that of sessions.
    """

    window: dict[str, Tree]
    seconds: float | None
    is_whole: bool = False
    gap: float | None = None

    def adapt(self, plans: Sequence[InputPlan]) -> None:
        """Adapts the window to the inputs.

        Inputs without end keep the batches of a sliding window that is not complete. A generator
        whose interval is not below the gap has a session for each message.
        """
        if not all(plan.is_bounded for plan in plans):
            self.is_whole = False
            if "size" in self.window:
                self.window["rest"] = "keep"
            return
        rates = [plan.source.get("rate") for plan in plans]
        if self.gap is None or len(rates) != 1 or not isinstance(rates[0], float):
            return
        if 1 / rates[0] >= self.gap and self.window.get("join") is None:
            self.window |= {"size": 1, "slide": 1}

    def records(self, plans: Sequence[InputPlan]) -> int | None:
        """Returns the number of records of the inputs that fill the buffer; None without one."""
        rows = self.window.get("rows")
        capacity = _integer(rows) if isinstance(rows, ScalarNode) else 0
        repeats = [plan.rows.get("repeat", 1) for plan in plans]
        each = repeats[0] if len(repeats) == 1 and isinstance(repeats[0], int) else 1
        return -(-capacity // max(1, each)) or None

    def check_tables(self, plans: Sequence[InputPlan], findings: Findings) -> None:
        """Reports tables of the query of a join that are no inputs."""
        join = self.window.get("join")
        query = join.get("query") if isinstance(join, dict) else None
        names = [plan.name for plan in plans if plan.name]
        if not isinstance(query, ScalarNode):
            return
        for name in plain_tables(query.written):
            if name not in names:
                findings.error(
                    f'there is no input "{name}"', query.location, code="unknown-input",
                    hint=did_you_mean(name, names)
                    or f"the inputs of the stream are: {', '.join(names) or 'none with a name'}",
                )  # fmt: skip

    def never_ends(self, plans: Sequence[InputPlan]) -> bool:
        """Returns whether a generator without end has an interval below the gap of a session."""
        rates = [plan.source.get("rate") for plan in plans if not plan.is_bounded]
        return any(isinstance(rate, float) and 1 / rate < (self.gap or 0) for rate in rates)


def pace(plans: Sequence[InputPlan], seconds: float | None, *, whole: bool) -> bool:
    """Sets the time of a batch of generators that end: of a window, or with `whole` of all rows.

    Returns whether they are all inputs, whose batches need no further interval.
    """
    paced = 0
    for plan in plans:
        rate, rows = plan.source.get("rate"), plan.source.get("rows")
        if not isinstance(rate, float) or not isinstance(rows, int):
            continue
        time = rows / rate if whole else seconds
        if time:
            plan.source["batch_time"] = f"{max(1, round(time * 1e6))}us"
            paced += 1
    return paced == len(plans)


def read_buffer(reading: Reading, type_: str) -> BufferPlan:
    """Returns the window of a buffer."""
    if type_ == "memory":
        return BufferPlan({"rows": reading.get("capacity")}, reading.seconds("timeout"))
    if type_ == "sliding_window":
        return _sliding(reading)
    if type_ == "session_window":
        gap = reading.seconds("gap")
        return BufferPlan({"join": _join(reading)}, None, is_whole=True, gap=gap)
    name = "size" if reading.get("interval") is None else "interval"
    seconds = reading.seconds(name)
    if reading.get(name) is None:
        reading.findings.error(
            f'{reading.subject} requires "interval"', reading.node.location, code="missing-option"
        )
    return BufferPlan({"join": _join(reading)}, seconds)


def _sliding(reading: Reading) -> BufferPlan:
    size = reading.get("window_size") or reading.get("size")
    slide = reading.get("slide_size") or reading.get("slide")
    for name, value in (("window_size", size), ("slide_size", slide)):
        if value is None:
            reading.findings.error(
                f'{reading.subject} requires "{name}"', reading.node.location,
                code="missing-option",
            )  # fmt: skip
    if slide is not None and 0 < _integer(size) < _integer(slide):
        reading.findings.error(
            f'"slide_size" of {reading.subject} is larger than window_size', slide.location,
            hint="write a slide_size of at most the window_size",
        )  # fmt: skip
    return BufferPlan({"size": size, "slide": slide}, reading.seconds("interval"), is_whole=True)


def _integer(node: Node | None) -> int:
    value = node.data() if node is not None else None
    return value if isinstance(value, int) else 0


def _join(reading: Reading) -> Tree:
    join = reading.map("join", _JOIN)
    if join is None:
        return None
    return {
        "query": join.get("query"),
        "decode": read_codec(join.get("codec"), join.subject, join.findings),
        "column": join.text("value_field") or None,
    }

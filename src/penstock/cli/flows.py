"""What went through the nodes of a run, as a table: for the live view, the summary and `status`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from penstock.core.text import plural
from penstock.core.units import size_text

Snapshot = Mapping[str, Any]
"""The numbers of a run, as `Metrics.snapshot` tells them."""


def flow_table(numbers: Snapshot, *, moving: bool) -> Table:
    """A line for each source and sink, and for each transform that has dead letters.

    With `moving` also what is true only of a moment: rates and lags.
    """
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    if not moving:
        table.add_column("type", style="dim", no_wrap=True)
    momentary = ("rows/s", "lag") if moving else ()
    for name in ("rows", *momentary, "dead letters", *(("last batch", "took") if moving else ())):
        table.add_column(name, justify="right", no_wrap=True)
    for name, flow in numbers["nodes"].items():
        bad = flow["dead_letters"]
        counted = flow["kind"] != "transform"
        cells = [name, *(() if moving else (flow["type"],))]
        cells.append(f"{flow['rows']:,}" if counted else "")
        if moving:
            cells += [f"{flow['rows_per_second']:,.0f}" if counted else "", lag(flow)]
        table.add_row(*cells, Text(f"{bad:,}" if bad else "", "yellow"), *_last(flow, moving))
    return table


def lag(flow: Mapping[str, Any]) -> str:
    """How far a source is behind: `3 files`. Empty where that is not known."""
    if flow["lag"] is None:
        return ""
    if flow["lag_unit"] == "bytes":
        return size_text(flow["lag"])
    return f"{flow['lag']:,} {flow['lag_unit']}"


def span(seconds: float) -> str:
    """A time that passed, for reading: `4.2 s`, `3 min 20 s`, `5 h 12 min`, `2 d 3 h`."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    for size, unit, below, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} {seconds % size // below:.0f} {smaller}"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def happened(numbers: Snapshot) -> list[str]:
    """The counts that have no column: `12 batches`, `1 restart`, `3 messages lost`."""
    told = [plural(numbers["batches"], "batch", "batches")]
    if numbers["restarts"]:
        told.append(plural(numbers["restarts"], "restart"))
    lost = sum(flow.get("lost", 0) for flow in numbers["nodes"].values())
    if lost:
        told.append(f"{plural(lost, 'message')} lost")
    return told


def watermark(numbers: Snapshot) -> list[str]:
    """How far event time has come in the slowest query: `watermark 2013-01-05 12:00`."""
    seen = [mark for mark in numbers["watermarks"].values() if not mark.startswith("1970-")]
    return [f"watermark {min(seen)[:16].replace('T', ' ')}"] if seen else []


def _last(flow: Mapping[str, Any], moving: bool) -> list[str]:
    if not moving:
        return []
    at, took = flow["last_batch"], flow["batch_seconds"]
    ago = "" if at is None else f"{span(max(0.0, time.time() - at))} ago"
    return [ago, "" if took is None else span(took)]

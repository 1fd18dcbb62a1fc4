"""The metrics of a run as a table, for the live view, the summary and `penstock status`."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from penstock.core.text import plural, printable
from penstock.core.units import size_text
from penstock.observe.execution import SLOW_SECONDS
from penstock.observe.snapshot import ExecutionSnapshot, NodeSnapshot, Snapshot


def metrics_table(numbers: Snapshot, *, moving: bool) -> Table:
    """Returns a table with a row for each source, sink, and transform with dead letters.

    `moving` adds current values: rates and lags.
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
            cells += [f"{flow['rows_per_second']:,.0f}" if counted else "", format_lag(flow)]
        table.add_row(*cells, Text(f"{bad:,}" if bad else "", "yellow"), *_last_batch(flow, moving))
    return table


def format_lag(flow: NodeSnapshot) -> str:
    """Returns the lag of a source, such as `3 files`; empty if it is unknown."""
    if flow["lag"] is None:
        return ""
    if flow["lag_unit"] == "bytes":
        return size_text(flow["lag"])
    return plural(flow["lag"], flow["lag_unit"].removesuffix("s"))


def format_elapsed(seconds: float) -> str:
    """Returns an elapsed time as `4.2 s`, `3 min 20 s`, `5 h 12 min` or `2 d 3 h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    for size, unit, below, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} {seconds % size // below:.0f} {smaller}"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def format_counts(numbers: Snapshot) -> list[str]:
    """Returns counts without a column, such as `12 batches`, `1 restart` and `3 late rows`."""
    counts = [plural(numbers["batches"], "batch", "batches")]
    if numbers["restarts"]:
        counts.append(plural(numbers["restarts"], "restart"))
    lost = sum(flow.get("lost", 0) for flow in numbers["nodes"].values())
    if lost:
        counts.append(f"{plural(lost, 'message')} lost")
    if numbers.get("late_rows"):
        counts.append(_format_late_rows(numbers))
    untimed = sum(flow.get("without_event_time", 0) for flow in numbers["nodes"].values())
    if untimed:
        counts.append(f"{plural(untimed, 'row')} without event time")
    return counts


def _format_late_rows(numbers: Snapshot) -> str:
    """Returns `3 late rows (clicks 2, views 1)`; `about 3 late rows` where only Spark counts."""
    text = plural(numbers["late_rows"], "late row")
    if not numbers.get("late_rows_exact", False):
        return f"about {text}"
    counts = {name: flow.get("late_rows", 0) for name, flow in numbers["nodes"].items()}
    nodes = [f"{name} {count:,}" for name, count in counts.items() if count]
    return f"{text} ({', '.join(nodes)})" if len(nodes) > 1 else text


def format_watermark(watermarks: Iterable[str]) -> list[str]:
    """Returns the lowest of the watermarks of queries: `watermark 2013-01-05 12:00`."""
    known = [mark for mark in watermarks if not mark.startswith("1970-")]
    return [f"watermark {min(known)[:16].replace('T', ' ')}"] if known else []


def format_states(numbers: Snapshot) -> list[str]:
    """Returns a line for each query with state, such as `state of orders: 8 rows, 1.8 KB`."""
    return [
        f"state of {name}: {plural(query['state_rows'], 'row')}, {size_text(query['state_bytes'])}"
        for name, query in numbers.get("queries", {}).items()
        if query.get("state_rows") is not None
    ]


def format_side_outputs(numbers: Snapshot) -> list[str]:
    """Returns a line for each side output that has missed batches or has failed."""
    return [
        printable(
            f"side output {name}: {plural(each['missed'], 'batch', 'batches')} missed: "
            f"{each['error']}"
        )
        for name, each in numbers.get("side_outputs", {}).items()
        if each["error"] is not None
    ]


def format_executions(numbers: Snapshot) -> list[str]:
    """Returns a line for each query and receiver that does not advance.

    These are queries and receivers that wait for their next attempt or have failed, and queries
    with a batch under way for more than `SLOW_SECONDS`.
    """
    kinds = (("query", numbers.get("queries", {})), ("receiver", numbers.get("receivers", {})))
    lines = [
        (f"{kind} {name}", _format_execution(execution))
        for kind, executions in kinds
        for name, execution in executions.items()
    ]
    return [printable(f"{label}: {text}") for label, text in lines if text]


def format_failure(execution: ExecutionSnapshot) -> str:
    """Returns the last error of a query or receiver, with the sink that failed."""
    error, sink = execution["error"], execution.get("sink")
    return printable(f"{error}" if sink is None else f"sink {sink}: {error}")


def _format_execution(execution: ExecutionSnapshot) -> str:
    now = time.time()
    parts = []
    error = format_failure(execution)
    if execution["state"] == "failed":
        parts.append(f"failed: {error}")
    if execution["state"] == "retrying":
        elapsed = format_elapsed(max(0.0, now - execution["since"]))
        parts.append(f"retrying for {elapsed}: {error}")
        pause = (execution["next_attempt"] or now) - now
        if pause > 0:
            parts.append(f"next attempt in {format_elapsed(pause)}")
    if execution["batch"] is not None and execution["batch_since"] is not None:
        age = now - execution["batch_since"]
        if age > SLOW_SECONDS or execution["state"] == "retrying":
            parts.append(f"batch {execution['batch']} under way for {format_elapsed(age)}")
    return " · ".join(parts)


def _last_batch(flow: NodeSnapshot, moving: bool) -> list[str]:
    if not moving:
        return []
    end, seconds = flow["last_batch"], flow["batch_seconds"]
    age = "" if end is None else f"{format_elapsed(max(0.0, time.time() - end))} ago"
    return [age, "" if seconds is None else format_elapsed(seconds)]

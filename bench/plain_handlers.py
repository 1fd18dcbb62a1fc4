"""The work of handlers in plain Python: functions from rows to the number of their output rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Rows = list[dict[str, Any]]


def threshold(rows: Rows) -> int:
    """Adds a threshold, which is multiplied by 1.5 after more than 2 seconds above it."""
    levels: dict[str, float] = {}
    since: dict[str, int] = {}
    for row in rows:
        host, load, second = row["host"], row["load"], int(row["time"].timestamp())
        level = levels.get(host, 50.0)
        if load <= level:
            since.pop(host, None)
        elif second - since.setdefault(host, second) > 2:
            level = levels[host] = level * 1.5
            since.pop(host)
            if load > level:
                since[host] = second
        row["threshold"] = level
    return len(rows)


def windows(rows: Rows) -> Iterator[Rows]:
    """Yields the windows of 60 seconds of each host, from its first row."""
    ends: dict[str, int] = {}
    buffers: dict[str, Rows] = {}
    for row in rows:
        host, second = row["host"], int(row["time"].timestamp())
        end = ends.setdefault(host, second + 60)
        buffer = buffers.setdefault(host, [])
        if second >= end:
            if buffer:
                yield buffer
            buffers[host] = buffer = []
            ends[host] = end + (second - end) // 60 * 60 + 60
        buffer.append(row)


def window(rows: Rows) -> int:
    return sum(map(len, windows(rows)))


def aggregate(rows: Rows) -> int:
    """Computes the last load and the mean load of windows."""
    found = []
    for each in windows(rows):
        mean = sum(row["load"] for row in each) / len(each)
        last = each[-1]
        found.append(
            {"time": last["time"], "host": last["host"], "last": last["load"], "mean": mean}
        )
    return len(found)


def join(rows: Rows) -> int:
    """Merges the rows of a window with equal disks, up to a second apart."""
    count = 0
    for each in windows(rows):
        anchors: dict[str, int] = {}
        merged: dict[tuple[str, int], dict[str, Any]] = {}
        for row in each:
            disk, second = row["disk"], int(row["time"].timestamp())
            if second - anchors.get(disk, second - 2) > 1:
                anchors[disk] = second
            into = merged.setdefault((disk, anchors[disk]), {})
            for name, value in row.items():
                if into.get(name) is None:
                    into[name] = value
        count += len(sorted(merged.values(), key=lambda row: row["time"]))
    return count


def derivative(rows: Rows) -> int:
    """Computes the slope of the parabola through a row and its neighbours."""
    last: dict[str, Rows] = {}
    found = 0
    for row in rows:
        near = last.setdefault(row["host"], [])
        near.append(row)
        if len(near) > 1 and near[-1]["time"].timestamp() - near[0]["time"].timestamp() > 1:
            middle = near[-2]
            around = [
                each for each in near
                if abs(each["time"].timestamp() - middle["time"].timestamp()) <= 1
            ]  # fmt: skip
            span = around[-1]["time"].timestamp() - around[0]["time"].timestamp()
            middle["slope"] = (around[-1]["load"] - around[0]["load"]) / span
            found += 1
            del near[:-2]
    return found

"""Random histories of rows, as events of Debezium."""

from __future__ import annotations

import itertools
import random
from typing import Any


def random_events(rng: random.Random, count: int, first: int) -> list[dict[str, Any]]:
    """Returns events of Debezium. An update may move a row to a key that is new or was left.

    `first` is the smallest key.
    """
    rows: dict[int, dict[str, Any]] = {}
    new_keys = itertools.count(first + 100)
    events = []
    for number in range(count):
        id_ = first + rng.randrange(6)
        after: dict[str, Any] = {"id": id_, "name": rng.choice("abcdefgh"), "number": number}
        if id_ not in rows:
            events.append({"op": "c", "after": after})
        elif rng.random() < 0.3:
            events.append({"op": "d", "before": rows.pop(id_)})
            continue
        else:
            before = rows.pop(id_)
            left = [key for key in range(first, first + 6) if key not in rows and key != id_]
            free = rng.choice([next(new_keys), *left])
            after["id"] = id_ if rng.random() < 0.6 else free
            events.append({"op": "u", "before": before, "after": after})
        rows[after["id"]] = after
    return events


def interleaved(rng: random.Random, histories: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Returns the events of all histories, each in its order."""
    order = [history for history in map(iter, histories) for _ in histories[0]]
    rng.shuffle(order)
    return [next(history) for history in order]

"""Ready rules of alerts: those of a new store. Users change and delete them as their own."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert, select

from penstock.runtime.state.directory import now
from penstock.server.store.tables import RULES

LAYOUT_OF_RULES = 6
"""The layout from which on stores have had ready rules: deleted ones are not added again."""
AUTHOR = "penstock"
READY_RULES: tuple[tuple[str, str, float, float], ...] = (
    ("failed", "failed", 0, 0),
    ("restarts", "restarts", 3, 10),
    ("dead-letters", "dead_letters", 0, 5),
    ("no-output", "no_output", 0, 30),
    ("disk", "disk", 10, 0),
)
"""The name, kind, threshold and minutes of each rule. They concern all pipelines, and have no
channels: their alerts are shown in the console until a user adds channels."""


def add_ready_rules(connection: Connection, layout: int | None) -> None:
    """Adds the ready rules to a new store, and to one of an earlier layout without any rule.

    A user who has made rules has chosen; such a store remains as it is.
    """
    if layout is not None and layout >= LAYOUT_OF_RULES:
        return
    if connection.execute(select(RULES.c.name).limit(1)).first() is not None:
        return
    for name, kind, threshold, minutes in READY_RULES:
        values: dict[str, Any] = {
            "name": name, "kind": kind, "pipelines": None, "threshold": threshold,
            "minutes": minutes, "channels": [], "enabled": True, "silenced_until": None,
            "author": AUTHOR, "time": now(),
        }  # fmt: skip
        connection.execute(insert(RULES).values(values))

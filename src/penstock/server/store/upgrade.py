"""Creation of the tables of a store, and their upgrade from earlier layouts."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, Engine, insert, inspect, select, text, update

from penstock.core.errors import StateError
from penstock.core.files.private_files import open_private
from penstock.server.store.ready_rules import add_ready_rules
from penstock.server.store.tables import LAYOUT, METADATA, STORE

STEPS: Mapping[int, Sequence[str]] = {
    2: ("UPDATE pipelines SET stamp = NULL",),  # the facts of files have connections
    3: ("ALTER TABLE pipelines ADD COLUMN failed_starts INTEGER DEFAULT 0 NOT NULL",),
    4: (
        "ALTER TABLE starts ADD COLUMN host VARCHAR",
        "UPDATE pipelines SET stamp = NULL",  # the facts of files have the kind of state
    ),
    5: ("ALTER TABLE pipelines ADD COLUMN wishes INTEGER DEFAULT 0 NOT NULL",),
}
"""The statements that lead to a layout from the one before, in addition to its new tables."""


def upgrade(engine: Engine) -> None:
    """Brings the tables of a store to the current layout, in one transaction.

    Raises StateError for a store of a newer version.
    """
    layout = _layout(engine)
    if layout is not None and layout > LAYOUT:
        raise StateError(
            "the store was written by a newer version of Penstock", code="newer-state",
            hint="Upgrade Penstock, or choose another directory with --data.",
        )  # fmt: skip
    if layout is not None and layout < LAYOUT:
        _back_up(engine, layout)
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # its driver begins none for DDL
        METADATA.create_all(connection)
        _take_steps(connection, layout)
        add_ready_rules(connection, layout)


def _layout(engine: Engine) -> int | None:
    """Returns the layout of a store; None for an empty one."""
    with engine.connect() as connection:
        if not inspect(connection).has_table(STORE.name):
            return None
        found: int | None = connection.execute(select(STORE.c.layout)).scalar()
        return found


def _take_steps(connection: Connection, layout: int | None) -> None:
    if layout is None:
        connection.execute(insert(STORE).values(layout=LAYOUT))
        return
    for number in range(layout + 1, LAYOUT + 1):
        for statement in STEPS.get(number, ()):
            connection.execute(text(statement))
    connection.execute(update(STORE).values(layout=LAYOUT))


def _back_up(engine: Engine, layout: int) -> None:
    """Copies the file of SQLite beside it. PostgreSQL has backups of its own."""
    if engine.dialect.name != "sqlite" or engine.url.database is None:
        return
    file = Path(engine.url.database)
    copy = file.with_name(f"{file.name}.layout-{layout}")
    open_private(copy, "w").close()
    with closing(sqlite3.connect(file)) as store, closing(sqlite3.connect(copy)) as target:
        store.backup(target)

"""Pipelines of the store: the wish for each one, its versions, and the starts of its runs."""

from __future__ import annotations

import hashlib
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from sqlalchemy import ColumnElement, delete, func, insert, select, update

from penstock.core.errors import UserError
from penstock.runtime.state.directory import now
from penstock.server.store.database import Database
from penstock.server.store.known import Known
from penstock.server.store.tables import PIPELINES, STARTS, VERSIONS

Wish = Literal["running", "stopped", "restarted"]
"""restarted: a run that began before the wish is stopped, and another one started."""

EJECTING_STARTS = 2
"""The number of failed starts in a share, after which a pipeline runs alone."""
EJECTED = (
    "The pipeline runs alone: two of its starts have ended the process of its share or have not "
    "locked its state. A start by a user or a new version returns it to the share."
)


@dataclass(frozen=True)
class StoredPipeline:
    """A pipeline of the store.

    `file` is the absolute path of its file. `version` is the applied version, and `digest` that of
    its text; None before the first one. `fresh` is whether its next run resets the state; it
    remains until a run has locked the state, so that a kill does not lose it. `failure`
    is the health of a pipeline whose restart the server has given up. `failed_starts` is the number
    of its starts in a share that have ended the host or have not locked the state. `wishes` is the
    number of wishes so far, which orders those within a second and those of other clocks.
    """

    id: str
    file: str
    wish: Wish
    wished_by: str | None
    wished_at: str | None
    fresh: bool
    version: int | None
    digest: str | None = None
    failure: dict[str, Any] | None = None
    failed_starts: int = 0
    wishes: int = 0

    @property
    def ejected(self) -> bool:
        """Whether the pipeline runs alone because of its failed starts in a share."""
        return self.failed_starts >= EJECTING_STARTS


_COLUMNS = [PIPELINES.c[name] for name in StoredPipeline.__dataclass_fields__]


@dataclass(frozen=True)
class Version:
    """An applied text of a pipeline."""

    number: int
    text: str
    author: str
    note: str
    time: str


@dataclass(frozen=True)
class Start:
    """The start of a run by the server."""

    run: str
    pipeline: str
    version: int | None
    time: str
    author: str
    pid: int | None
    identity: str | None
    ended: bool = False
    host: str | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether a server on another machine has started the run."""
        return self.host not in (None, socket.gethostname())


class Pipelines:
    """The pipelines of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._adding = threading.Lock()
        self._all = Known[dict[str, StoredPipeline]](database, PIPELINES)
        self._starts = Known[list[Start]](database, STARTS)

    def all(self) -> list[StoredPipeline]:
        """Returns all pipelines, by file."""
        return list(self._by_id().values())

    def get(self, id: str) -> StoredPipeline:
        """Returns a pipeline. Raises UserError for an unknown ID."""
        found = self._by_id().get(id)
        if found is None:
            raise UserError(
                "there is no such pipeline", code="unknown-pipeline",
                hint="It may be deleted. List the pipelines by GET /api/v1/pipelines.",
            )  # fmt: skip
        return found

    @property
    def is_known(self) -> bool:
        """Whether `all` and `get` do not wait for the store."""
        return self._all.get("") is not None

    def _by_id(self) -> dict[str, StoredPipeline]:
        return self._all.read("", self._read) or {}

    def _read(self) -> dict[str, StoredPipeline]:
        rows = self._database.rows(select(*_COLUMNS).order_by(PIPELINES.c.file))
        return {row["id"]: StoredPipeline(**row) for row in rows}

    def add(self, file: str) -> str:
        """Adds the pipeline of a file and returns its ID; that of a known file."""
        with self._adding:
            known = select(PIPELINES.c.id).where(PIPELINES.c.file == file)
            row = self._database.first(known)
            if row is not None:
                return str(row["id"])
            id = secrets.token_hex(5)
            self._database.execute(insert(PIPELINES).values(id=id, file=file))
            return id

    def facts(self, id: str, stamp: str) -> dict[str, Any] | None:
        """Returns the facts of a pipeline's file; None for a file with another stamp."""
        mine = (PIPELINES.c.id == id) & (PIPELINES.c.stamp == stamp)
        row = self._database.first(select(PIPELINES.c.facts).where(mine))
        return row["facts"] if row is not None else None

    def set_facts(self, id: str, stamp: str, facts: dict[str, Any]) -> None:
        """Stores the facts of a pipeline's file."""
        values = {"stamp": stamp, "facts": facts}
        self._database.execute(update(PIPELINES).where(PIPELINES.c.id == id).values(values))

    def remove(self, id: str) -> None:
        """Removes a pipeline with its versions and starts. Its file and its state remain."""
        with self._database.transaction() as connection:
            for table in (VERSIONS, STARTS):
                connection.execute(delete(table).where(table.c.pipeline == id))
            connection.execute(delete(PIPELINES).where(PIPELINES.c.id == id))

    def set_wish(self, id: str, wish: Wish, user: str, *, fresh: bool = False) -> None:
        """Records the wish of a user for a pipeline. A start returns the pipeline to its share."""
        values = {
            "wish": wish, "wished_by": user, "wished_at": now(), "fresh": fresh, "failure": None,
            "wishes": PIPELINES.c.wishes + 1,
        }  # fmt: skip
        if wish != "stopped":
            values["failed_starts"] = 0
        self._database.execute(update(PIPELINES).where(PIPELINES.c.id == id).values(values))

    def give_up(self, id: str, wishes: int, failure: dict[str, Any] | None) -> None:
        """Records that a pipeline stays as it is after the end of its run.

        `failure` is its health, if the run failed. A wish after that of the number remains.
        """
        values = {
            "wish": "stopped", "wished_by": None, "wished_at": now(), "failure": failure,
            "wishes": PIPELINES.c.wishes + 1,
        }  # fmt: skip
        mine = _is_wish(id, wishes) & (PIPELINES.c.wish == "running")
        self._database.execute(update(PIPELINES).where(mine).values(values))

    @contextmanager
    def new_version(self, id: str, text: str, author: str, note: str) -> Iterator[Version]:
        """Adds a version and makes it the applied one, unless the block raises an error."""
        with self._database.transaction() as connection:
            last = connection.execute(
                select(func.max(VERSIONS.c.number)).where(VERSIONS.c.pipeline == id)
            ).scalar()
            version = Version((last or 0) + 1, text, author, note, now())
            connection.execute(insert(VERSIONS).values(pipeline=id, **version.__dict__))
            connection.execute(
                update(PIPELINES)
                .where(PIPELINES.c.id == id)
                .values(version=version.number, digest=digest_of(text), failed_starts=0)
            )
            yield version

    def versions(self, id: str, limit: int, before: int | None = None) -> list[Version]:
        """Returns the last versions of a pipeline, before that of a number, last first."""
        query = select(VERSIONS).where(VERSIONS.c.pipeline == id)
        if before is not None:
            query = query.where(VERSIONS.c.number < before)
        rows = self._database.rows(query.order_by(VERSIONS.c.number.desc()).limit(limit))
        return [_version(row) for row in rows]

    def version(self, id: str, number: int) -> Version:
        """Returns a version. Raises UserError for an unknown number."""
        mine = (VERSIONS.c.pipeline == id) & (VERSIONS.c.number == number)
        row = self._database.first(select(VERSIONS).where(mine))
        if row is None:
            newest = self.versions(id, 1)
            raise UserError(
                f"there is no version {number}", code="unknown-version",
                hint=f"The newest version is {newest[0].number}." if newest else None,
            )  # fmt: skip
        return _version(row)

    def begin_start(self, id: str, run: str, version: int | None, author: str) -> bool:
        """Records that a run is about to start, which fulfils the wish. Earlier ones have ended.

        Returns False, and records nothing, if the wish is now that the pipeline is stopped.
        """
        with self._database.transaction() as connection:
            wished = (PIPELINES.c.id == id) & (PIPELINES.c.wish != "stopped")
            fulfilled = update(PIPELINES).where(wished).values(wish="running")
            if not connection.execute(fulfilled).rowcount:
                return False
            earlier = (STARTS.c.pipeline == id) & ~STARTS.c.ended
            connection.execute(update(STARTS).where(earlier).values(ended=True))
            connection.execute(insert(STARTS).values(
                run=run, pipeline=id, version=version, time=now(), author=author,
                host=None if self._database.lease.is_of_one_machine else socket.gethostname(),
            ))  # fmt: skip
        return True

    def end_fresh(self, id: str, wishes: int) -> None:
        """Records that a run has reset the state, as a wish asked. A later wish remains."""
        same = _is_wish(id, wishes)
        self._database.execute(update(PIPELINES).where(same).values(fresh=False))

    def add_failed_start(self, id: str, wishes: int) -> None:
        """Counts a failed start in a share. A later wish has reset the count."""
        same = _is_wish(id, wishes)
        counted = {"failed_starts": PIPELINES.c.failed_starts + 1}
        self._database.execute(update(PIPELINES).where(same).values(counted))

    def reset_failed_starts(self, id: str) -> None:
        """Records that a start in a share has succeeded."""
        mine = update(PIPELINES).where(PIPELINES.c.id == id)
        self._database.execute(mine.values(failed_starts=0))

    def set_process(self, run: str, pid: int, identity: str | None) -> None:
        """Records the process of a started run."""
        values = {"pid": pid, "identity": identity}
        self._database.execute(update(STARTS).where(STARTS.c.run == run).values(values))

    def end_start(self, run: str) -> None:
        """Records that the server has acted on the end of a run."""
        self._database.execute(update(STARTS).where(STARTS.c.run == run).values(ended=True))

    def open_start(self, id: str) -> Start | None:
        """Returns the last start whose end the server has not acted on; None without one."""
        query = select(STARTS).where((STARTS.c.pipeline == id) & ~STARTS.c.ended)
        row = self._database.first(query.order_by(STARTS.c.time.desc()).limit(1))
        return Start(**row) if row is not None else None

    def starts(self, id: str, limit: int = 100) -> list[Start]:
        """Returns the starts of a pipeline, last first."""
        read = partial(self._read_starts, id, limit)
        return self._starts.read(f"{limit} {id}", read) or []

    def knows_starts(self, id: str, limit: int = 100) -> bool:
        """Returns whether `starts` does not wait for the store."""
        return self._starts.get(f"{limit} {id}") is not None

    def _read_starts(self, id: str, limit: int) -> list[Start]:
        query = select(STARTS).where(STARTS.c.pipeline == id)
        rows = self._database.rows(query.order_by(STARTS.c.time.desc()).limit(limit))
        return [Start(**row) for row in rows]


def _is_wish(id: str, wishes: int) -> ColumnElement[bool]:
    """Returns the condition that the wish of a number is still the last one of a pipeline."""
    return (PIPELINES.c.id == id) & (PIPELINES.c.wishes == wishes)


def digest_of(text: str) -> str:
    """Returns the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _version(row: dict[str, Any]) -> Version:
    return Version(**{name: row[name] for name in Version.__dataclass_fields__})

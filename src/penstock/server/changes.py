"""Checks and changes of the pipelines of a server."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from penstock.core.errors import PenstockError, StateError, UserError
from penstock.server.catalog import Catalog, CatalogEntry
from penstock.server.change_locks import ChangeLocks
from penstock.server.connections.profiles import Profiles
from penstock.server.drafts import Draft
from penstock.server.pipeline_files import PipelineFiles
from penstock.server.settings import Settings
from penstock.server.store.accounts import User
from penstock.server.store.pipelines import Pipelines, Version, digest_of
from penstock.server.supervision.supervisor import Supervisor
from penstock.server.workers.pool import WorkerPool

NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
CHECK_SECONDS = {"static": 10.0, "plan": 120.0, "connect": 180.0, "sample": 240.0}
ANSWER_SECONDS = 10.0
Level = Literal["static", "plan", "connect", "sample"]
Question = Literal["complete", "hover"]


class Changes:
    """Checks and changes of pipelines. Safe for several threads."""

    def __init__(
        self, settings: Settings, pipelines: Pipelines, files: PipelineFiles, catalog: Catalog,
        supervisor: Supervisor, workers: WorkerPool, profiles: Profiles,
    ) -> None:  # fmt: skip
        self._profiles = profiles
        self._settings, self._files, self._locks = settings, files, ChangeLocks()
        self._pipelines, self._catalog = pipelines, catalog
        self._supervisor, self._workers = supervisor, workers

    def check(self, id: str, text: str | None, level: Level, user: User) -> dict[str, Any]:
        """Returns the result of a check of a text, by default that of the file."""
        return self._check(self.draft(id, text, user), level)

    def check_new(self, name: str, text: str, level: Level, user: User) -> dict[str, Any]:
        """Returns the result of a check of a pipeline that does not exist yet."""
        return self._check(self.new_draft(name, text, user), level)

    def ask(
        self, id: str, operation: Question, text: str, user: User, **place: int
    ) -> dict[str, Any]:
        """Answers a question of an editor about a text of a pipeline."""
        return self._call(operation, self.draft(id, text, user), ANSWER_SECONDS, **place)

    def ask_new(
        self, name: str, operation: Question, text: str, user: User, **place: int
    ) -> dict[str, Any]:
        """Answers a question of an editor about a pipeline that does not exist yet."""
        return self._call(operation, self.new_draft(name, text, user), ANSWER_SECONDS, **place)

    def draft(self, id: str, text: str | None, user: User) -> Draft:
        """Returns a text of a pipeline, by default that of its file."""
        file = self._require(id).file
        found = self._files.read(file) if text is None else text
        return Draft(file, found, self._profiles.environment(user, id))

    def own_draft(self, id: str) -> Draft:
        """Returns the text of the file of a pipeline, with the connections of the pipeline."""
        file = self._require(id).file
        return Draft(file, self._files.read(file), self._profiles.environment(None, id))

    def new_draft(self, name: str, text: str, user: User) -> Draft:
        """Returns a text of a pipeline that does not exist yet."""
        return Draft(self._new_file(name, text), text, self._profiles.environment(user, None))

    def convert(self, name: str, text: str, user: User) -> dict[str, Any]:
        """Returns the language of a text of a new pipeline, and the text as YAML."""
        return self._call("convert", self.new_draft(name, text, user), ANSWER_SECONDS)

    def _check(self, draft: Draft, level: Level) -> dict[str, Any]:
        return self._call("check", draft, CHECK_SECONDS[level], level=level)

    def _call(
        self, operation: str, draft: Draft, timeout: float, **arguments: Any
    ) -> dict[str, Any]:
        return self._workers.call(
            operation, draft.file, text=draft.text, timeout=timeout, variables=draft.variables,
            **arguments,
        )  # fmt: skip

    def create(self, name: str, text: str, user: User, note: str = "") -> str:
        """Creates a pipeline from a valid text and returns its ID.

        The check is that of `apply`: it also finds wrong columns. Raises UserError for an invalid
        or existing name, and CheckFailed for an invalid text.
        """
        file = self._new_file(name, text)
        with self._locks.changing(name):
            return self._create(name, file, text, user, note)

    def _create(self, name: str, file: Path, text: str, user: User, note: str) -> str:
        if any(os.path.lexists(file.with_suffix(suffix)) for suffix in (".sql", ".yaml")):
            raise StateError(
                f'the pipeline "{name}" exists', code="existing-pipeline",
                hint="Choose another name, or apply the text to the existing pipeline.",
            )  # fmt: skip
        draft = self.new_draft(name, text, user)
        levels: tuple[Level, ...] = ("static", "plan")
        for level in levels:  # the second one starts Spark
            self._require_valid(self._check(draft, level))
        id = self._pipelines.add(str(file))
        try:
            with self._pipelines.new_version(id, text, user.name, note or "created"):
                self._files.write(file, text)
        except PenstockError:
            self._files.remove(file)
            self._pipelines.remove(id)
            raise
        self._catalog.reread(id)
        return id

    def apply(
        self, id: str, text: str, user: User, *, note: str = "", fresh: bool = False,
        base: int | None = None,
    ) -> Version:  # fmt: skip
        """Writes a new text to a pipeline's file, and restarts the pipeline if it runs.

        Raises CheckFailed, before anything stops, for an invalid text and for changes that the
        state does not support, unless `fresh` resets the state. Raises StateError if another
        change is under way, or the applied version is not `base`; 0 is none.
        """
        with self._locks.changing(id):
            return self._apply(id, text, user, note, fresh, base)

    def _apply(
        self, id: str, text: str, user: User, note: str, fresh: bool, base: int | None
    ) -> Version:
        file = self._require(id).file
        current = self._pipelines.get(id).version or 0
        if base is not None and base != current:
            raise StateError(
                f"the pipeline has version {current}, expected {base}", code="newer-version",
                hint="Read the newer version, and apply the text again.",
            )  # fmt: skip
        found = self._check(self.draft(id, text, user), "plan")
        if fresh:
            found["errors"] = [e for e in found["errors"] if e["code"] != "changed-plan"]
            found["ok"] = not found["errors"]
        self._require_valid(found)
        earlier = self._files.read(file)
        if text != earlier:
            self._record_current(id, file)
        try:
            with self._pipelines.new_version(id, text, user.name, note) as version:
                self._files.write(file, text)
        except PenstockError:  # the store may fail to commit after the file is written
            if self._files.read(file) != earlier:
                self._files.write(file, earlier)
            raise
        self._catalog.reread(id)
        if self._pipelines.get(id).wish != "stopped":
            self._wish(id, "restarted", user.name, fresh=fresh)
        return version

    def roll_back(
        self, id: str, number: int, user: User, *, fresh: bool = False, base: int | None = None
    ) -> Version:
        """Applies the text of an earlier version, by the same checks as `apply`."""
        text = self._pipelines.version(id, number).text
        note = f"roll back to version {number}"
        return self.apply(id, text, user, note=note, fresh=fresh, base=base)

    def start(self, id: str, author: str, *, fresh: bool = False) -> None:
        """Wishes that a pipeline runs, again if it is stopping. Raises CheckFailed for errors."""
        with self._locks.changing(id):
            entry = self._require_startable(id)
            self._record_current(id, entry.file)
            supervised = self._supervisor.find(id)
            again = supervised is not None and supervised.stopping
            self._wish(id, "restarted" if again else "running", author, fresh=fresh)

    def stop(self, id: str, author: str) -> None:
        """Wishes that a pipeline stops after its current batch."""
        self._wish(id, "stopped", author)

    def stop_elsewhere(self, id: str) -> None:
        """Requests the end of a run on another machine, if its state is in an object store."""
        entry, found = self._catalog.entry(id), self._supervisor.find(id)
        runs_here = found is not None and found.status is not None and found.status.owner
        if entry is not None and entry.stored and not runs_here:
            self._call("request_stop", self.own_draft(id), 30.0)

    def restart(self, id: str, author: str, *, fresh: bool = False) -> None:
        """Wishes that a pipeline stops and starts again. Raises CheckFailed for errors."""
        self._require_startable(id)
        self._wish(id, "restarted", author, fresh=fresh)

    def delete(self, id: str) -> None:
        """Removes a stopped pipeline from the server; its file if the API created it.

        The state directory remains. Raises StateError while the pipeline runs.
        """
        with self._locks.changing(id):
            self._delete(id)

    def _delete(self, id: str) -> None:
        pipeline = self._pipelines.get(id)
        supervised = self._supervisor.find(id)
        runs = supervised is not None and supervised.status and supervised.status.owner
        if runs or pipeline.wish != "stopped":
            raise StateError(
                "the pipeline runs", code="still-running", hint="Stop the pipeline first."
            )
        file = Path(pipeline.file)
        if not self._settings.is_deletable(file):
            raise UserError(
                f"{file.name} is a file of the directory of the server", code="own-file",
                hint="Remove the file; the pipeline then has none and can be deleted.",
            )  # fmt: skip
        if os.path.lexists(file):
            self._files.remove(file)
        self._pipelines.remove(id)
        self._catalog.refresh()

    def dead_letters(self, id: str, operation: str, **arguments: Any) -> dict[str, Any]:
        """Performs an operation on the dead letters of a pipeline; see `workers.operations`."""
        seconds = 600.0 if operation == "replay_dead_letters" else 30.0
        return self._call(operation, self.own_draft(id), seconds, **arguments)

    def _wish(
        self, id: str, wish: Literal["running", "stopped", "restarted"], author: str,
        *, fresh: bool = False,
    ) -> None:  # fmt: skip
        self._pipelines.get(id)
        self._pipelines.set_wish(id, wish, author, fresh=fresh)
        self._supervisor.wake()

    def _record_current(self, id: str, file: Path) -> None:
        """Adds a version for a text that was changed in the directory, without the server."""
        text = self._files.read(file)
        if self._pipelines.get(id).digest != digest_of(text):
            with self._pipelines.new_version(id, text, "file", "changed in the directory"):
                pass

    def _require(self, id: str) -> CatalogEntry:
        self._pipelines.get(id)
        entry = self._catalog.entry(id) or self._catalog.reread(id)
        if entry is None:
            raise UserError(
                "the file of the pipeline does not exist", code="missing-file",
                hint="Restore the file, or delete the pipeline.",
            )  # fmt: skip
        return entry

    def _require_startable(self, id: str) -> CatalogEntry:
        entry = self._require(id)
        if not entry.is_read:
            entry = self._catalog.reread(id) or entry
        if entry.errors:
            raise CheckFailed([dict(error) for error in entry.errors])
        return entry

    def _new_file(self, name: str, text: str) -> Path:
        if not NAME.fullmatch(name):
            raise UserError(
                f'"{name[:80]}" is no name of a pipeline', code="invalid-name",
                hint="Use lower-case letters, digits, - and _, at most 64 characters.",
            )  # fmt: skip
        suffix = ".sql" if _is_script(text) else ".yaml"
        return self._settings.created / name / f"{name}{suffix}"

    @staticmethod
    def _require_valid(result: dict[str, Any]) -> None:
        if not result["ok"]:
            raise CheckFailed(result["errors"], result.get("changes", []))


class CheckFailed(PenstockError):
    """The errors of a text that is not applied, and the changes that its state does not support."""

    def __init__(
        self, errors: list[dict[str, Any]], changes: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__(errors[0]["message"], code=errors[0]["code"], hint=errors[0].get("hint"))
        self.errors, self.changes = errors, changes or []


def _is_script(text: str) -> bool:
    """Returns whether a text is SQL: its first word is one of SQL's."""
    for line in _code_lines(text):
        word = line.split(maxsplit=1)[0].upper()
        return word in ("CREATE", "INSERT", "SELECT", "SET", "WITH")
    return False


def _code_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.strip() and not line.strip().startswith(("--", "#")):
            yield line

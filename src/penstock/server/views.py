"""Views of the pipelines of a server: health, metrics, runs, versions and logs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.core.errors import UserError
from penstock.observe.snapshot import Snapshot
from penstock.runtime.health import Health
from penstock.runtime.state.batch_log import read_batches
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.status import FinishedRun
from penstock.server.catalog import Catalog, CatalogEntry
from penstock.server.settings import Settings
from penstock.server.store.pipelines import EJECTED, Pipelines, Start, StoredPipeline, Version
from penstock.server.supervision.run_log import LogFilter, read_log
from penstock.server.supervision.supervised import Supervised
from penstock.server.supervision.supervisor import Supervisor


@dataclass(frozen=True)
class Summary:
    """A pipeline in a list. `changed` is whether its file differs from the applied version.

    `active` is whether a run has the lock of the state directory. `share` is the name of the share
    in the file. `ejected` is the reason for which the pipeline runs alone nevertheless, and null in
    its share. `deletable` is false for a file that the API did not create.
    """

    id: str
    name: str
    file: str
    language: str
    health: Health
    wish: str
    version: int | None
    changed: bool
    rows_per_second: float
    lag: int | None
    dead_letters: int
    active: bool
    share: str | None
    ejected: str | None
    deletable: bool


class Views:
    """The pipelines of a server, read only. Safe for several threads."""

    def __init__(
        self, settings: Settings, pipelines: Pipelines, catalog: Catalog, supervisor: Supervisor
    ) -> None:
        self._settings, self._pipelines = settings, pipelines
        self._catalog, self._supervisor = catalog, supervisor

    @property
    def ready(self) -> bool:
        """Whether all pipelines have been compared once."""
        return self._supervisor.ready

    @property
    def is_known(self) -> bool:
        """Whether `summaries`, `summary` and `detail` do not wait for the store."""
        return self._pipelines.is_known

    def knows_runs(self, id: str) -> bool:
        """Returns whether `runs` does not wait for the store."""
        return self.is_known and self._pipelines.knows_starts(id)

    def free_share(self, id: str) -> float | None:
        """Returns the free share of the file system of a state; None if it is not known."""
        entry = self._catalog.entry(id)
        if entry is None or entry.state is None:
            return None
        existing = next(
            (each for each in (entry.state, *entry.state.parents) if each.exists()), None
        )
        try:
            found = os.statvfs(existing) if existing is not None else None
        except OSError:
            return None
        return found.f_bavail / found.f_blocks if found is not None and found.f_blocks else None

    def numbers(self, id: str) -> Snapshot | None:
        """Returns the metrics of the last run of a pipeline."""
        supervised = self._supervisor.find(id)
        return supervised.status.numbers if supervised and supervised.status else None

    def logs(
        self,
        id: str,
        *,
        run: str | None,
        level: str,
        text: str | None,
        since: str | None,
        limit: int,
    ) -> list[dict[str, Any]]:
        """Returns the last lines of the log of a pipeline, oldest first."""
        directory = self._settings.logs / self._pipelines.get(id).id
        return read_log(directory, LogFilter(run, level, text, since), limit)

    def state(self, id: str) -> StateDirectory:
        """Returns the state directory of a pipeline. Raises UserError for an invalid file."""
        entry = self._catalog.entry(self._pipelines.get(id).id)
        if entry is None or entry.state is None:
            raise UserError(
                "the file of the pipeline is invalid or does not exist", code="missing-file",
                hint="Correct the file, or restore it.",
            )  # fmt: skip
        return StateDirectory(entry.state)

    def summaries(self) -> list[Summary]:
        """Returns all pipelines, the worst health first."""
        found = [self._summary(pipeline) for pipeline in self._pipelines.all()]
        return sorted(found, key=lambda each: (-each.health.severity, each.name))

    def summary(self, id: str) -> Summary:
        """Returns one pipeline as in a list. Raises UserError for an unknown ID."""
        return self._summary(self._pipelines.get(id))

    def detail(self, id: str) -> dict[str, Any]:
        """Returns a pipeline with its nodes, queries, errors, text and the numbers of its run."""
        summary, entry = self.summary(id), self._catalog.entry(id)
        supervised = self._supervisor.find(id)
        status = supervised.status if supervised else None
        facts = vars(entry) if entry is not None else {}
        return {
            **asdict(summary),
            **{name: facts.get(name, []) for name in ("nodes", "queries", "errors", "warnings")},
            "bounded": facts.get("bounded"),
            "state": str(entry.state) if entry and entry.state else None,
            "text": entry.text if entry else None,
            "numbers": status.numbers if status else None,
            "owner": asdict(status.owner) if status and status.owner else None,
        }

    def runs(
        self, id: str, *, before: str | None = None, limit: int | None = None
    ) -> list[dict[str, Any]]:
        """Returns the last runs of a pipeline, or those before a run, last first.

        They have version and author if known. Raises UserError for an unknown run.
        """
        supervised = self._supervisor.find(self._pipelines.get(id).id)
        finished = supervised.status.runs if supervised and supervised.status else ()
        starts = {start.run: start for start in self._pipelines.starts(id)}
        known = [_run(run, starts.get(run.id)) for run in finished]
        current = [start for run, start in starts.items() if not start.ended]
        ids = {run["id"] for run in known}
        runs = [
            *({"id": start.run, "began": start.time, "ended": None, "ending": None, "errors": {},
               "pipeline_version": start.version, "author": start.author}
              for start in current if start.run not in ids),
            *known,
        ]  # fmt: skip
        first = _index_after(runs, before)
        return runs[first : None if limit is None else first + limit]

    def batches(
        self, id: str, *, query: str | None, before: int | None, limit: int
    ) -> list[dict[str, Any]]:
        """Returns the last batches of a pipeline, or those before an entry, last first."""
        entry = self._catalog.entry(self._pipelines.get(id).id)
        if entry is None or entry.state is None:
            return []
        state = StateDirectory(entry.state)
        return read_batches(state, query=query, before=before, limit=limit)

    def versions(self, id: str, limit: int, before: int | None = None) -> list[Version]:
        """Returns the last versions of a pipeline, or those before a number, last first."""
        return self._pipelines.versions(self._pipelines.get(id).id, limit, before)

    def version(self, id: str, number: int) -> Version:
        """Returns a version. Raises UserError for an unknown number."""
        return self._pipelines.version(self._pipelines.get(id).id, number)

    def _summary(self, pipeline: StoredPipeline) -> Summary:
        entry, supervised = self._catalog.entry(pipeline.id), self._supervisor.find(pipeline.id)
        numbers = supervised.status.numbers if supervised and supervised.status else None
        nodes = list((numbers or {}).get("nodes", {}).values()) if numbers else []
        lags = [node["lag"] for node in nodes if node["lag"] is not None]
        running = bool(supervised and supervised.status and supervised.status.owner)
        return Summary(
            pipeline.id, entry.name if entry else Path(pipeline.file).stem,
            self._shown(pipeline.file), entry.language if entry else "",
            _health(pipeline, supervised), pipeline.wish,
            pipeline.version, bool(entry and pipeline.digest and entry.digest != pipeline.digest),
            sum(n["rows_per_second"] for n in nodes if n["kind"] == "source") if running else 0.0,
            sum(lags) if lags else None, numbers["dead_letters"] if numbers else 0, running,
            entry.share if entry else None, EJECTED if pipeline.ejected else None,
            self._is_deletable(Path(pipeline.file), entry),
        )  # fmt: skip

    def _is_deletable(self, file: Path, entry: CatalogEntry | None) -> bool:
        """Returns `Settings.is_deletable`. The catalog has found the file of an entry."""
        if entry is not None:
            return file.is_relative_to(self._settings.created)
        return self._settings.is_deletable(file)

    def _shown(self, file: str) -> str:
        """Returns the path of a file within its directory."""
        for directory in (self._settings.created, self._settings.directory):
            if Path(file).is_relative_to(directory):
                return str(Path(file).relative_to(directory))
        return Path(file).name


def _health(pipeline: StoredPipeline, supervised: Supervised | None) -> Health:
    """Returns the health as of the last comparison; `stopping` at once after the wish."""
    if supervised is None:
        return Health("unknown")
    if supervised.ends(pipeline):
        return Health("stopping", supervised.health.since)
    return supervised.health


def _index_after(runs: Sequence[dict[str, Any]], before: str | None) -> int:
    """Returns the index of the run after `before`. Raises UserError for an unknown run."""
    if before is None:
        return 0
    for index, run in enumerate(runs, 1):
        if run["id"] == before:
            return index
    raise UserError(
        f'the pipeline has no run "{before}"', code="no-run", hint="Read the first page again."
    )


def _run(run: FinishedRun, start: Start | None) -> dict[str, Any]:
    return {
        **asdict(run),
        "pipeline_version": start.version if start else None,
        "author": start.author if start else None,
    }

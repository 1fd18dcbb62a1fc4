"""State directory of a pipeline.

lock                one run at a time
id                  the ID of the directory, kept by `--fresh`
plan.json           the plan of the last run (see `plan.fingerprint`)
key.json            key of the hashes of secrets in plan.json
sinks.json          starts of sinks within existing queries (see `runtime.backfills.sink_starts`)
backfill/SINK/      state of an unfinished backfill
schemas.json        inferred schemas, pinned
primary_keys.json   primary keys that systems declare, by source
checkpoints/QUERY/  checkpoint of Spark: offsets, commits, state of windows and joins; record of the
                    batch in progress (see `engine.checkpoints.batch_record`)
nodes/NODE/         files of a component
replay.json         an unfinished replay of dead letters
spool/QUERY/BATCH/  dead letters of uncommitted batches
dead_letters/       dead letters
status.json         metrics of the run, for `penstock status`
stop                stop request
taps/ID/            a tap on a node of the run (see `runtime.taps.files`)
complete            marks that the input has ended and all windows are closed
life                ID of the state, new after a reset
version             layout of the directory; marks that Penstock created the state
run.json            the run in progress
runs.jsonl          one line for each finished run
batches.jsonl       one line for each of the last batches; .1 and .2 have earlier ones
spark.log           Spark's own log
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.core.errors import StateError
from penstock.core.files.durable import create_directory_durably, replace_durably
from penstock.core.files.private_files import open_private
from penstock.core.version import __version__
from penstock.engine.checkpoints.offset_log import last_number
from penstock.engine.checkpoints.state_storage import LOCAL, StateStorage
from penstock.runtime.state.entries import (
    HISTORY,
    ID,
    LOCK,
    LOG,
    MARKER,
    RUN,
    check_ownership,
    read_marker,
    remove_entries,
)
from penstock.runtime.state.files import FULL, read_if_exists, reading, writing
from penstock.runtime.state.foreign import check_run, read_finished
from penstock.runtime.state.lock import acquire_lock, read_owner, write_owner

LAYOUT = 1
"""Version of the directory's layout."""
_LOCK_SECONDS, _DOWNLOAD_SECONDS = 0.3, 10.0
"""The time for which a run waits for the lock. Other processes hold it while they read the owner,
or while they download a state."""


class StateDirectory:
    """Paths and small files of a pipeline's state."""

    def __init__(self, root: Path, storage: StateStorage = LOCAL) -> None:
        self.root, self.storage = root, storage

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def spool(self) -> Path:
        return self.root / "spool"

    @property
    def dead_letters(self) -> Path:
        return self.root / "dead_letters"

    @property
    def lock(self) -> Path:
        """The lock file. Its content differs in each run."""
        return self.root / LOCK

    @property
    def log(self) -> Path:
        return self.root / LOG

    def checkpoint(self, query: str) -> Path:
        """Returns the checkpoint directory of a query."""
        return self.checkpoints / query

    def id(self) -> str:
        """Returns the ID of the directory, created by the first run and kept by `reset`."""
        entry = self.read(ID)
        if entry is None:
            entry = {"id": os.urandom(8).hex()}
            self.write(ID, entry)
        return str(entry["id"])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the directory for a run, and creates the directory if it is missing.

        Raises StateError if another run owns the directory, or if its state is not of Penstock.
        """
        timeout = _LOCK_SECONDS if self.storage is LOCAL else _DOWNLOAD_SECONDS
        with writing(self.root):
            self._create()
            if self.storage is LOCAL:
                check_ownership(self.root)
            file = open_private(self.lock, "a+")
        with file:
            acquire_lock(file, self.root, timeout)
            with writing(self.root):
                write_owner(file, now())
            with self.storage.owned():
                self._prepare()
                yield

    def _prepare(self) -> None:
        with writing(self.root):
            self._check_layout()
            create_directory_durably(self.checkpoints)
            (self.root / "stop").unlink(missing_ok=True)

    @contextmanager
    def changed(self) -> Iterator[None]:
        """Makes changes of entries beside a run durable in an object store.

        A local run stores them itself. Raises StateError if a run on another machine owns the
        state.
        """
        if self.storage is LOCAL or self._local_owner() is not None:
            yield
        else:
            with self.locked():
                yield

    def refresh(self) -> None:
        """Downloads the state from an object store. Does nothing for a local directory."""
        self.storage.refresh()

    def is_elsewhere(self) -> bool:
        """Returns whether a run on another machine owns the state."""
        return self._local_owner() is None and self.storage.owner() is not None

    def owner(self) -> dict[str, Any] | None:
        """Returns pid, host and start time of the run that owns the state, or None."""
        local = self._local_owner()
        other = self.storage.owner() if local is None else None
        return dict(other) if other is not None else local

    def _local_owner(self) -> dict[str, Any] | None:
        with reading(self.lock):
            return read_owner(self.lock)

    def read(self, name: str) -> Any:
        """Returns the content of a JSON file; None without the file."""
        path = self.root / name
        try:
            text = read_if_exists(path)
            return None if text is None else json.loads(text)
        except (ValueError, RecursionError) as error:
            raise StateError(
                f"{self.root / name} is damaged",
                code="corrupt-state",
                detail=str(error),
                hint="Reset the state with penstock run --fresh.",
            ) from error

    def write(self, name: str, content: Any) -> None:
        """Replaces a JSON file atomically."""
        with writing(self.root / name):
            replace_durably(self.root / name, json.dumps(content, indent=1))
        self.storage.note(self.root / name)

    def key(self) -> bytes:
        """Returns the key of hashes of secrets, created at random at the first call."""
        entry = self.read("key.json")
        if entry is None:
            entry = {"key": secrets.token_hex(32)}
            self.write("key.json", entry)
        return bytes.fromhex(entry["key"])

    def life(self) -> str:
        """Returns an ID of the state that changes with `--fresh`, so that batch IDs stay unique."""
        entry = self.read("life")
        if entry is None:
            entry = {"id": os.urandom(4).hex()}
            self.write("life", entry)
        return str(entry["id"])

    def begin_run(self, run: Mapping[str, Any]) -> None:
        """Records the start of a run, given its `id` and the time when it `began`.

        Adds an earlier run without an end to the history.
        """
        killed = self.killed_run()
        if killed is not None:
            self._append_history(killed)
        self.write(RUN, {**run, "version": __version__})

    def end_run(self, run: Mapping[str, Any], **facts: Any) -> None:
        """Adds the run of `begin_run` to the history, with facts about its end."""
        self._append_history({**run, "version": __version__, **facts})
        with writing(self.root):
            (self.root / RUN).unlink(missing_ok=True)

    def killed_run(self) -> dict[str, Any] | None:
        """Returns the last run if it was killed; None otherwise. The caller checks `owner`.

        The run ended after its metrics were last written.
        """
        run = check_run(self.root / RUN, self.read(RUN))
        if run is None or any(entry["id"] == run["id"] for entry in self.history()[-1:]):
            return None
        status = self.root / "status.json"
        with reading(status):
            last = _format_time(status.stat().st_mtime) if status.exists() else run["began"]
        return {**run, "ended": max(last, run["began"]), "ending": "killed", "errors": {}}

    def history(self) -> list[dict[str, Any]]:
        """Returns the finished runs, last one last."""
        lines = (read_if_exists(self.root / HISTORY) or "").splitlines()
        found = (read_finished(line) for line in lines)
        return [run for run in found if run is not None]

    def _append_history(self, run: Mapping[str, Any]) -> None:
        path = self.root / HISTORY
        with writing(path), open_private(path, "a") as file:
            file.write(json.dumps(run) + "\n")
        self.storage.note(path)

    def committed(self, query: str) -> int | None:
        """Returns the number of the last batch in a query's commit log."""
        return last_number(self.checkpoint(query) / "commits")

    def planned(self, query: str) -> int | None:
        """Returns the number of the last batch in a query's offset log."""
        return last_number(self.checkpoint(query) / "offsets")

    def contents(self) -> list[str]:
        """Describes the state that `reset` removes."""
        parts = []
        names = sorted(path.name for path in self.checkpoints.glob("*"))
        if names:
            parts.append(f"offsets and open windows of {', '.join(names)}")
        nodes = self.root / "nodes"
        found = [*nodes.glob("*/journal"), *nodes.glob("*/phases/*/journal")]
        journals = sorted(path.relative_to(nodes).parts[0] for path in found)
        if journals:
            parts.append(f"received messages not yet written of {', '.join(journals)}")
        backfills = sorted(path.parent.name for path in self.root.glob("backfill/*/range.json"))
        if backfills:
            parts.append(f"unfinished backfills of {', '.join(backfills)}")
        if (self.root / "schemas.json").exists():
            parts.append("pinned schemas")
        if self.dead_letters.exists() and any(self.dead_letters.iterdir()):
            parts.append("dead letters")
        return parts

    def reset(self) -> None:
        """Removes the state. Lock, ID, log, history and other files remain."""
        with writing(self.root):
            remove_entries(self.root)

    def _create(self) -> None:
        try:
            create_directory_durably(self.root)
        except OSError as error:
            if error.errno in FULL:
                raise
            raise StateError(
                f"cannot create the state directory {self.root}: {error.strerror}",
                code="unwritable-state",
                hint="Set runtime.state to a writable directory.",
            ) from error
        ignore = self.root.parent / ".gitignore"
        if self.root.parent.name == ".penstock" and not ignore.exists():
            ignore.write_text("*\n")

    def _check_layout(self) -> None:
        version = read_marker(self.root)
        if version is None:
            self.write(MARKER, {"layout": LAYOUT, "penstock": __version__})
        elif version["layout"] > LAYOUT:
            raise StateError(
                f"the state was written by Penstock {version['penstock']}, a newer version",
                code="newer-state",
                hint=f"Upgrade Penstock {__version__}, or reset the state with --fresh.",
            )


def now() -> str:
    """Returns the current time as ISO 8601 in UTC."""
    return _format_time(time.time())


def _format_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))

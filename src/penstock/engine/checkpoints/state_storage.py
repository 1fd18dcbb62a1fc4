"""Storage of the state of a pipeline: its local files, and their copy in an object store.

A run works on local files. With an object store, each durable point of a run is a write of the
files that have changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from penstock.core.errors import PenstockError


class StateStorage(Protocol):
    """The storage behind the local files of a state directory. Called by several threads."""

    @property
    def lost(self) -> PenstockError | None:
        """The error of a run whose state another run has taken over; None before."""

    def owned(self) -> AbstractContextManager[None]:
        """Owns the state during a run. The local files are then those of the storage.

        Raises StateError if another run owns the state.
        """

    def owner(self) -> Mapping[str, Any] | None:
        """Returns pid, host, start and identity of a run elsewhere; None without one."""

    def refresh(self) -> None:
        """Makes the local files those of the storage, unless a run uses them."""

    def request_stop(self) -> None:
        """Requests a stop of the run elsewhere."""

    def note(self, path: Path) -> None:
        """Notes a changed file, which the next `stage` or `sync` copies, too."""

    def stage(self, *paths: Path) -> None:
        """Copies the changed files of directories. The next `sync` makes them durable, as one."""

    def sync(self, *paths: Path) -> None:
        """Copies the changed files of directories, and makes all copies durable at once.

        Raises StateError if another run has taken over the state, and Transient.
        """

    def check_owner(self) -> None:
        """Raises StateError if another run may have taken over the state, and Transient."""


class LocalStorage:
    """The storage of a local directory, whose files are durable when they are written."""

    lost: PenstockError | None = None

    def owned(self) -> AbstractContextManager[None]:
        return nullcontext()

    def owner(self) -> Mapping[str, Any] | None:
        return None

    def refresh(self) -> None: ...

    def request_stop(self) -> None: ...

    def note(self, path: Path) -> None: ...

    def stage(self, *paths: Path) -> None: ...

    def sync(self, *paths: Path) -> None: ...

    def check_owner(self) -> None: ...


LOCAL: StateStorage = LocalStorage()


@dataclass(frozen=True)
class QueryStorage:
    """The storage of the files that belong to the batches of a query."""

    storage: StateStorage = LOCAL
    paths: tuple[Path, ...] = ()

    def stage(self) -> None:
        """Copies the changed files."""
        self.storage.stage(*self.paths)

    def sync(self) -> None:
        """Makes the changed files durable."""
        self.storage.sync(*self.paths)

    def check_owner(self) -> None:
        """Raises StateError if another run may have taken over the state, and Transient."""
        self.storage.check_owner()


LOCAL_QUERY = QueryStorage()

"""Staging area of the sink: hidden files, and the ledger that commits them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from penstock.connectors.files.storage import Storage
from penstock.core.errors import ConnectError, Permanent, StateError

HIDDEN = ".penstock"


@dataclass(frozen=True)
class Part:
    """A complete hidden file: `temp` is published as `folder`/`stem``suffix` below the root.

    `suffix` is that of the content. Published files have the suffix `name_suffix` if it is set.
    """

    temp: str
    folder: str
    stem: str
    suffix: str
    rows: int
    bytes: int
    created: float
    schema: str = ""
    name_suffix: str = ""

    @property
    def kind(self) -> tuple[str, ...]:
        """The key of parts that can be merged into one file."""
        return self.folder, self.suffix, self.schema, self.name_suffix

    def published_path(self, prefix: str) -> str:
        """Returns the path below the root under which the part is published."""
        name = f"{prefix}-{self.stem}{self.name_suffix or self.suffix}"
        return "/".join(filter(None, (self.folder, name)))


@dataclass(frozen=True)
class Ledger:
    """The committed state: all batches up to `batch` are published files or `staged` parts.

    `moves` are the files that the last commit publishes. Publishing is idempotent: a hidden file
    that is missing has been moved. `content` is the content of `batch`, empty in older ledgers.
    `append_at` is the size of the published file before the commit if the sink appends to it.
    """

    batch: int = -1
    moves: tuple[tuple[str, str], ...] = ()
    staged: tuple[Part, ...] = ()
    content: str = ""
    append_at: int | None = None

    def to_json(self) -> str:
        """Returns the ledger as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Returns the ledger of a JSON text."""
        values = json.loads(text)
        moves = tuple((source, target) for source, target in values["moves"])
        staged = tuple(Part(**part) for part in values["staged"])
        content, append_at = values.get("content", ""), values.get("append_at")
        return cls(values["batch"], moves, staged, content, append_at)

    def contains(self, temp: str) -> bool:
        """Returns whether a hidden file is staged or still to be published."""
        return any(part.temp == temp for part in self.staged) or any(
            source == temp for source, _ in self.moves
        )


class StagingArea:
    """The hidden directory of a sink for one query ID.

    The areas of one owner share a directory, so that runs with different state, also on different
    machines, never change the files of each other.

    One atomic write of the ledger commits a batch, before its files are published. A crash before
    the write discards the batch; after a crash later, recovery publishes all of its files.
    """

    def __init__(self, storage: Storage, root: str, sink: str, name: str) -> None:
        self.storage = storage
        self.root = root
        self.name = name
        self.directory = f"{HIDDEN}/{sink}/{name}"

    @classmethod
    def list_areas(cls, storage: Storage, root: str, sink: str) -> Iterator[StagingArea]:
        """Yields the existing staging areas."""
        for name in storage.names(f"{root}/{HIDDEN}/{sink}"):
            yield cls(storage, root, sink, name)

    def temp(self, batch: int, unique: str) -> str:
        """Returns the path of a hidden file of a batch, below the root."""
        return f"{self.directory}/{batch}/{unique}.tmp"

    def path(self, path: str) -> str:
        """Returns the absolute path of a path below the root."""
        return f"{self.root.rstrip('/')}/{path}"

    def size(self, path: str) -> int:
        """Returns the size of a file below the root; 0 if it does not exist."""
        entry = self.storage.stat(self.path(path))
        return entry.size if entry is not None else 0

    def ledger(self) -> Ledger:
        """Returns the last committed ledger."""
        path = self.path(f"{self.directory}/ledger.json")
        content = self.storage.read(path)
        if content is None:
            return Ledger()
        try:
            return Ledger.from_json(content.decode())
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(
                f"the ledger {self.storage.url(path)} is corrupt",
                detail=str(error),
                hint="Restore the ledger from a backup, or set path to another directory.",
            ) from error

    def commit(self, ledger: Ledger) -> None:
        """Writes the ledger durably, then publishes its files."""
        content = ledger.to_json().encode()
        self.storage.replace(self.path(f"{self.directory}/ledger.json"), content)
        self.publish(ledger, is_first=True)

    def publish(self, ledger: Ledger, is_first: bool = False) -> None:
        """Publishes the files committed in the ledger. `is_first` is the first attempt.

        A file that cannot be published does not prevent the others. Its error is raised at the end.
        """
        folders = {}
        failure: ConnectError | None = None
        for source, target in ledger.moves:
            if self.storage.stat(self.path(source)) is None:
                continue
            try:
                if ledger.append_at is None:
                    self.storage.move(self.path(source), self.path(target))
                else:
                    start = None if is_first else ledger.append_at
                    self.storage.append(self.path(source), self.path(target), start)
            except OSError as error:
                failure = failure or self._publish_error(error, source, target)
            else:
                folders[self.path(target).rpartition("/")[0]] = True
        for folder in folders:
            self.storage.sync_directory(folder)
        if failure is not None:
            raise failure

    def _publish_error(self, error: OSError, source: str, target: str) -> ConnectError:
        """Returns the error of a committed file that cannot be moved to its published path."""
        url = self.storage.url(self.path(target))
        failure = self.storage.convert_error(error, "publish", url)
        hidden = self.storage.url(self.path(source))
        failure.__cause__ = error
        if isinstance(failure, Permanent):
            failure.hint = (
                f"{failure.hint or 'Make the path writable.'} Or move the committed file {hidden}, "
                "which has the rows, to another directory: the next run continues without the file."
            )
        return failure

    def clean_up(self, ledger: Ledger, batch: int | None = None) -> None:
        """Deletes hidden files, of one batch or of all, that the ledger does not contain."""
        directory = self.directory if batch is None else f"{self.directory}/{batch}"
        start = len(self.root.rstrip("/")) + 1
        for entry in list(self.storage.walk(self.path(directory), hidden=True)):
            path = entry.path[start:]
            if path.endswith(".tmp") and not ledger.contains(path):
                self.storage.delete(entry.path)
        self.storage.prune(self.path(directory))

    def discard(self, parts: Iterable[Part]) -> None:
        """Deletes the hidden files of parts."""
        for part in parts:
            self.storage.delete(self.path(part.temp))


def sink_name(pipeline: str, node: str, owner: str = "") -> str:
    """Returns a readable and unique directory name for a sink of an owner."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", f"{pipeline}-{node}")[:60]
    return "-".join(filter(None, (readable, _digest(pipeline, node)[:6], owner)))


def staging_name(pipeline: str, node: str, owner: str, query: str) -> str:
    """Returns the name of a staging area. File names contain it."""
    return _digest(pipeline, node, *filter(None, (owner, query)))[:8]


def _digest(*words: str) -> str:
    return hashlib.blake2b("\0".join(words).encode()).hexdigest()


def group_parts(parts: Sequence[Part]) -> list[list[Part]]:
    """Groups parts of one kind, in order."""
    groups: dict[tuple[str, ...], list[Part]] = {}
    for part in parts:
        groups.setdefault(part.kind, []).append(part)
    return list(groups.values())

"""Hidden files on their way to becoming visible, and the ledger that decides which do."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from penstock.connectors.files.storage import Storage
from penstock.core.errors import StateError

HIDDEN = ".penstock"


@dataclass(frozen=True)
class Part:
    """A complete hidden file: `temp` below the root becomes `folder`/`stem``suffix`."""

    temp: str
    folder: str
    stem: str
    suffix: str
    rows: int
    bytes: int
    since: float
    schema: str = ""

    @property
    def kind(self) -> tuple[str, str, str]:
        """Parts of one kind can become one file."""
        return self.folder, self.suffix, self.schema

    def final(self, prefix: str) -> str:
        """Where it becomes visible, below the root."""
        return "/".join(filter(None, (self.folder, f"{prefix}-{self.stem}{self.suffix}")))


@dataclass(frozen=True)
class Ledger:
    """What is decided: all batches up to `batch` are in, as visible files or as `staged` parts.

    `moves` are the files that the last decision makes visible. Carrying it out again is harmless:
    a temp that is gone has been moved.
    """

    batch: int = -1
    moves: tuple[tuple[str, str], ...] = ()
    staged: tuple[Part, ...] = ()

    def text(self) -> str:
        """The ledger as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def of(cls, text: str) -> Ledger:
        """The ledger of `text`."""
        values = json.loads(text)
        moves = tuple((source, target) for source, target in values["moves"])
        staged = tuple(Part(**part) for part in values["staged"])
        return cls(values["batch"], moves, staged)

    def keeps(self, temp: str) -> bool:
        """Whether a temp is still needed."""
        return any(part.temp == temp for part in self.staged) or any(
            source == temp for source, _ in self.moves
        )


class Life:
    """One life of a sink: the batches of one query id, in a hidden directory below the root.

    A batch is decided by one atomic write of the ledger, before anything becomes visible. Before
    it nothing of the batch is there; after it all of it will be, whatever happens.
    """

    def __init__(self, storage: Storage, root: str, sink: str, name: str) -> None:
        self.storage = storage
        self.root = root
        self.name = name
        self.directory = f"{HIDDEN}/{sink}/{name}"

    @classmethod
    def all(cls, storage: Storage, root: str, sink: str) -> Iterator[Life]:
        """The lives that have left something."""
        for name in storage.names(f"{root}/{HIDDEN}/{sink}"):
            yield cls(storage, root, sink, name)

    def temp(self, batch: int, unique: str) -> str:
        """The name of a hidden file of a batch, below the root."""
        return f"{self.directory}/{batch}/{unique}.tmp"

    def at(self, path: str) -> str:
        """A path below the root as the storage knows it."""
        return f"{self.root.rstrip('/')}/{path}"

    def ledger(self) -> Ledger:
        """What has been decided so far."""
        path = self.at(f"{self.directory}/ledger.json")
        content = self.storage.read(path)
        if content is None:
            return Ledger()
        try:
            return Ledger.of(content.decode())
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(
                f"{self.storage.url(path)} is damaged",
                detail=str(error),
                hint="it says which files are complete; restore it, or choose another directory",
            ) from error

    def decide(self, ledger: Ledger) -> None:
        """Makes a decision last, then carries it out."""
        content = ledger.text().encode()
        self.storage.replace(self.at(f"{self.directory}/ledger.json"), content)
        self.carry_out(ledger)

    def carry_out(self, ledger: Ledger) -> None:
        """Makes visible what was decided to be."""
        folders = {}
        for source, target in ledger.moves:
            if self.storage.stat(self.at(source)) is not None:
                self.storage.move(self.at(source), self.at(target))
                folders[self.at(target).rpartition("/")[0]] = True
        for folder in folders:
            self.storage.settle(folder)

    def tidy(self, ledger: Ledger, batch: int | None = None) -> None:
        """Deletes hidden files, of one batch or of all, that no decision needs."""
        under = self.directory if batch is None else f"{self.directory}/{batch}"
        start = len(self.root.rstrip("/")) + 1
        for entry in list(self.storage.walk(self.at(under), hidden=True)):
            below = entry.path[start:]
            if below.endswith(".tmp") and not ledger.keeps(below):
                self.storage.delete(entry.path)
        self.storage.prune(self.at(under))

    def discard(self, parts: Iterable[Part]) -> None:
        """Deletes hidden files."""
        for part in parts:
            self.storage.delete(self.at(part.temp))


def sink_name(pipeline: str, node: str) -> str:
    """A directory name for a sink: readable, and different for different sinks."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", f"{pipeline}-{node}")[:60]
    return f"{readable}-{_digest(pipeline, node)[:6]}"


def life_name(pipeline: str, node: str, query: str) -> str:
    """The name of a life of a sink; part of the names of its files."""
    return _digest(pipeline, node, query)[:8]


def _digest(*words: str) -> str:
    return hashlib.blake2b("\0".join(words).encode()).hexdigest()


def grouped(parts: Sequence[Part]) -> list[list[Part]]:
    """Parts of one kind together, in order."""
    groups: dict[tuple[str, str, str], list[Part]] = {}
    for part in parts:
        groups.setdefault(part.kind, []).append(part)
    return list(groups.values())

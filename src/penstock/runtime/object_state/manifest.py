"""The manifest of a state in an object store: its files, and the lease of the run that owns it.

The manifest is one object. Each durable point of a run replaces it, on the condition that it is the
version that the run has written before. So a run never adds to the state of another one. Small
texts, such as the entries of Spark's logs, are in the manifest. Other files are objects of their
own, which are written before the manifest names them and never change.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.core.errors import StateError
from penstock.core.version import __version__

LAYOUT = 1
KEY = "manifest"
FILES = "files"
"""The prefix of the keys of files."""


@dataclass(frozen=True)
class StoredFile:
    """A file: its text, or the keys of the objects with its parts, and the digest of its content.

    `modified` is in nanoseconds since 1970.
    """

    size: int
    modified: int
    digest: str
    text: str | None = None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lease:
    """The right of a run to write the state. `seconds` after its last renewal others may take it.

    `namespace` is that of the process numbers, which containers have of their own.
    """

    id: str
    pid: int
    host: str
    since: str
    identity: str | None
    namespace: str | None
    seconds: float

    def owner(self) -> dict[str, Any]:
        """Returns the process of the run."""
        names = ("pid", "host", "since", "identity")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Manifest:
    """The state after a durable point. `sequence` counts the points.

    Without a lease no run is in progress.
    """

    sequence: int = 0
    lease: Lease | None = None
    files: Mapping[str, StoredFile] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Returns the content of the object."""
        files = {
            path: {name: value for name, value in asdict(file).items() if value not in (None, ())}
            for path, file in self.files.items()
        }
        stored = {
            "layout": LAYOUT, "penstock": __version__, "sequence": self.sequence,
            "lease": asdict(self.lease) if self.lease else None, "files": files,
        }  # fmt: skip
        return gzip.compress(json.dumps(stored).encode(), compresslevel=1, mtime=0)

    @classmethod
    def decode(cls, content: bytes, url: str) -> Manifest:
        """Returns the manifest of an object. Raises StateError if the object is no manifest."""
        try:
            stored = json.loads(gzip.decompress(content))
            if stored["layout"] > LAYOUT:
                raise _newer(stored["penstock"])
            lease = stored["lease"]
            files = {
                path: StoredFile(**{**file, "parts": tuple(file.get("parts", ()))})
                for path, file in stored["files"].items()
            }
            return cls(int(stored["sequence"]), Lease(**lease) if lease else None, files)
        except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise StateError(
                f"{url}/{KEY} is damaged", code="corrupt-state", detail=repr(error),
                hint="Restore an earlier version of the object, or set another runtime.state.",
            ) from error  # fmt: skip


def _newer(version: str) -> StateError:
    return StateError(
        f"the state was written by Penstock {version}, a newer version", code="newer-state",
        hint=f"Upgrade Penstock {__version__}, or set another runtime.state.",
    )  # fmt: skip

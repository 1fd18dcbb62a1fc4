"""The lease of a state in an object store: one run at a time, on any machine.

A run renews its lease while it runs. Another run takes over a lease that was not renewed in time,
by the clock of the server, and the lease of a process of this machine that has ended.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from penstock.core.errors import StateError
from penstock.core.process_identity import process_identity
from penstock.runtime.object_state.client import Conflict, ObjectClient, Version, ignored_failures
from penstock.runtime.object_state.errors import unsupported_store
from penstock.runtime.object_state.manifest import KEY, Lease, Manifest
from penstock.runtime.state.lock import running_error

LEASE_SECONDS = 30.0
RENEWALS = 3
"""The number of renewals within the time of a lease."""
_POLL_SECONDS = 1.0
_CLOCK_SECONDS = 1.0
"""The resolution of the times of objects."""
_MAX_CONFLICTS = 5
"""The number of conflicts after which the store is assumed to reject all conditional writes."""


@dataclass(frozen=True)
class Acquired:
    """A lease that this run has taken, and the version of its manifest."""

    manifest: Manifest
    version: dict[str, str]


def new_lease(seconds: float, since: str) -> Lease:
    """Returns a lease of this process."""
    pid = os.getpid()
    return Lease(
        uuid4().hex, pid, socket.gethostname(), since, process_identity(pid), _namespace(), seconds
    )


def acquire(
    client: ObjectClient, lease: Lease, wait: Callable[[float], None] = time.sleep
) -> Acquired:
    """Takes the lease of a state.

    Waits until a lease that may have ended is renewed, or its time has passed. Raises StateError if
    another run renews its lease, and Permanent if the store has no conditional writes.
    """
    first: Version | None = None
    deadline, conflicts = 0.0, 0
    while conflicts < _MAX_CONFLICTS:
        found = client.read(KEY)
        manifest = Manifest() if found is None else Manifest.decode(found[0], client.url)
        other = manifest.lease
        if found and other and other.id != lease.id and not has_ended(other):
            version = found[1]
            if first is None:
                first = version
                deadline = time.monotonic() + _remaining(client, other, version)
            elif version.id != first.id:
                raise running_error(other.owner(), f"state: {client.url}")
            if time.monotonic() < deadline:
                wait(_POLL_SECONDS)
                continue
        new = Manifest(manifest.sequence + 1, lease, manifest.files)
        try:
            return _take(client, new, found[1] if found else None)
        except Conflict:
            conflicts += 1
    raise unsupported_store(client.url)


def _take(client: ObjectClient, new: Manifest, before: Version | None) -> Acquired:
    """Writes a manifest in place of the version before it.

    Raises Conflict if there is another one, and Permanent if the store does not detect conflicts.
    """
    content = new.encode()
    first = client.replace(KEY, content, before.id) if before else client.create(KEY, content)
    taken = Manifest(new.sequence + 1, new.lease, new.files)
    content = taken.encode()
    version = client.replace(KEY, content, first)
    with suppress(Conflict):
        client.create(KEY, content)
        raise unsupported_store(client.url)
    with suppress(Conflict):
        client.replace(KEY, content, first)
        raise unsupported_store(client.url)
    return Acquired(taken, version)


def _remaining(client: ObjectClient, lease: Lease, version: Version) -> float:
    """Returns the seconds until a lease ends, by the clock of the server."""
    key = f"clock-{uuid4().hex}"
    client.write(key, b"")
    now = client.version(key)
    with ignored_failures():
        client.delete([key])
    age = (now.modified - version.modified).total_seconds() if now is not None else 0.0
    return lease.seconds + _CLOCK_SECONDS - age


def has_ended(lease: Lease) -> bool:
    """Returns whether the process of a lease was one of this machine, and has ended."""
    boot = (process_identity(os.getpid()) or "").partition(":")[0]
    if not boot or lease.identity is None or lease.identity.partition(":")[0] != boot:
        return False
    here = (socket.gethostname(), _namespace())
    return (lease.host, lease.namespace) == here and process_identity(lease.pid) != lease.identity


def lost_error(lease: Lease | None, url: str) -> StateError:
    """Returns the error of a run whose lease another one has taken."""
    other = f"process {lease.pid} on {lease.host}, since {lease.since}" if lease else "another run"
    return StateError(
        f"another run has taken over the state ({other})", code="state-taken-over",
        detail=f"state: {url}; this run has not renewed its lease in time, and has committed "
        "nothing since then",
        hint="Start no second run of a pipeline, and check the connection to the object store.",
    )  # fmt: skip


def _namespace() -> str | None:
    """Returns the namespace of process numbers; None on a system without namespaces."""
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return None

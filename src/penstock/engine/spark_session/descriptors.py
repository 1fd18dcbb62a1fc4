"""File descriptors of a process that runs Spark."""

from __future__ import annotations

import resource

from penstock.core.errors import PenstockError

REQUIRED = 1024
"""The open files that a run may need: 300 of Java, those of its queries, and connections."""


def require_descriptors() -> None:
    """Raises the limit of open files to `REQUIRED`. Raises PenstockError if that is not allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= REQUIRED:
        return
    if hard != resource.RLIM_INFINITY and hard < REQUIRED:
        raise PenstockError(
            f"expected a limit of at least {REQUIRED:,} open files, found {hard:,}",
            code="open-files",
            hint=f"Raise the limit, as with ulimit -n {4 * REQUIRED}.",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (REQUIRED, hard))

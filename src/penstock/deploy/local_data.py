"""Data at paths of this machine, which other machines do not have."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from penstock.core.errors import PenstockError, PlanError
from penstock.deploy.options import is_path, options
from penstock.plan.model import Plan


def local_data_warnings(plan: Plan, copied: Collection[Path]) -> Iterator[PenstockError]:
    """Yields a warning for each source and sink of files that are not in an object store.

    Files that are `copied` have no warning.
    """
    source_map = plan.pipeline.source_map
    for node, (route, field, value) in options(plan):
        paths = value if isinstance(value, list) else [value]
        local = [path for path in paths if isinstance(path, str) and "://" not in path]
        local = [path for path in local if Path(path).absolute() not in copied]
        if route[-1] == "path" and is_path(field) and local:
            yield PlanError(
                f"{node.label}: other machines do not have the path",
                code="local-path", where=source_map.value(route),
                hint="write the URL of an object store, or a directory that all machines share",
            )  # fmt: skip

"""Warnings about data at paths of this machine, which other machines do not have."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from penstock.core.errors import PenstockError, PlanError
from penstock.plan.local_data import local_data
from penstock.plan.model import Plan


def local_data_warnings(
    plan: Plan, copied: Collection[Path], *, one_machine: bool = False
) -> Iterator[PenstockError]:
    """Yields a warning for each source and sink of files that are not in an object store.

    Files that are `copied` have no warning. `one_machine` is whether a single other machine runs
    the pipeline.
    """
    source_map = plan.pipeline.source_map
    shared, own = "a directory that all machines share", "a path in a volume of the pod"
    for node, route, paths in local_data(plan):
        if any(Path(path).absolute() not in copied for path in paths):
            yield PlanError(
                f"{node.label}: other machines do not have the path",
                code="local-path", where=source_map.value(route),
                hint=f"write the URL of an object store, or {own if one_machine else shared}",
            )  # fmt: skip

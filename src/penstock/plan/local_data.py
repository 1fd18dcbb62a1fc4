"""Data at paths of this machine, which other machines may not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.options import is_path, options
from penstock.spec.source_map import Route

_NAMES = frozenset({"path", "warehouse", "location"})
"""The options with the place of the rows themselves."""
_FILE_SCHEME = "file://"


class LocalData(NamedTuple):
    """An option of a node with paths of this machine, which may be patterns."""

    node: Node
    route: Route
    paths: tuple[str, ...]


def local_data(plan: Plan) -> Iterator[LocalData]:
    """Yields the options of nodes whose data are not in an object store."""
    for node, (route, field, value) in options(plan):
        if route[-1] not in _NAMES or not is_path(field):
            continue
        texts = value if isinstance(value, list) else [value]
        paths = [t.removeprefix(_FILE_SCHEME) for t in texts if isinstance(t, str)]
        if local := tuple(path for path in paths if "://" not in path):
            yield LocalData(node, route, local)

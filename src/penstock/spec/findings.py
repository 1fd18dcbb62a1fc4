"""Findings: the errors of pydantic, each at a value of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from penstock.spec.fields import fields_at
from penstock.spec.source_map import Route, SourceMap

MAP_ERRORS = {"dict_type", "mapping_type", "model_type", "model_attributes_type"}
"""The errors of pydantic of a value in place of a map."""
_KEY_ERRORS = {"missing", "extra_forbidden"}


def find_errors(
    details: Iterable[dict[str, Any]], source_map: SourceMap, prefix: Route, model: type[BaseModel]
) -> list[Finding]:
    """Returns the errors of pydantic in data at `prefix`, which is not a `model`."""
    items: list[Item] = [(tuple(detail["loc"]), (), detail) for detail in details]
    return list(_Reader(source_map, model).read(items, prefix))


@dataclass(frozen=True)
class Finding:
    """One error: `details` are those of pydantic, of one error or of the branches of a union."""

    route: Route
    trail: Route
    details: tuple[dict[str, Any], ...]
    name: str | None = None

    @property
    def kind(self) -> str:
        return str(self.details[0]["type"])

    @property
    def is_extra(self) -> bool:
        return self.kind == "extra_forbidden"

    @property
    def expects_map(self) -> bool:
        """Whether only a map is valid."""
        return {detail["type"] for detail in self.details} <= MAP_ERRORS


Item = tuple[Route, Route, dict[str, Any]]
"""The remaining path of pydantic, the path before, and the error."""


@dataclass(frozen=True)
class _Reader:
    source_map: SourceMap
    model: type[BaseModel]

    def read(self, items: list[Item], route: Route) -> Iterator[Finding]:
        """Yields the errors at and below `route`; of a union, those of the best matching branch."""
        branches: dict[str | int, list[Item]] = {}
        groups: dict[str | int, list[Item]] = {}
        for remaining, trail, details in items:
            if remaining:
                step, *steps = remaining
                groups.setdefault(step, []).append((tuple(steps), (*trail, step), details))
            else:
                yield Finding(route, trail, (details,))
        for step, group in groups.items():
            exists = self.source_map.find((*route, step)) is not None
            if (exists or self._is_field(group, step)) and not _is_key_error(group):
                yield from self.read(group, (*route, step))
            elif step == "[key]" or isinstance(step, int):
                yield from self.read(group, route)
            elif _is_key_error(group):
                yield Finding(route, group[0][1][:-1], (group[0][2],), str(step))
            else:
                branches[step] = group
        yield from self._best_branch(branches, route)

    def _best_branch(
        self, branches: dict[str | int, list[Item]], route: Route
    ) -> Iterator[Finding]:
        alternatives = [list(self.read(group, route)) for group in branches.values()]
        matching = [
            branch
            for branch in alternatives
            if not any(_is_value_error(route, finding) for finding in branch)
        ]
        if matching:
            yield from min(matching, key=len)
        elif alternatives:
            value_errors = [
                finding
                for branch in alternatives
                for finding in branch
                if _is_value_error(route, finding)
            ]
            details = tuple(detail for error in value_errors for detail in error.details)
            yield Finding(route, value_errors[0].trail, details)

    def _is_field(self, group: list[Item], step: str | int) -> bool:
        """Returns whether the step is a field of the model, for data that is not from a file."""
        return step in fields_at(self.model, group[0][1][:-1])


def _is_key_error(group: list[Item]) -> bool:
    return all(not remaining and details["type"] in _KEY_ERRORS for remaining, _, details in group)


def _is_value_error(route: Route, finding: Finding) -> bool:
    """Returns whether the finding is an error of the value at `route`."""
    return finding.route == route and finding.kind not in _KEY_ERRORS

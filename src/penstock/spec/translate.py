"""Pydantic's errors in words for the people who wrote the file, one by one and with places."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from penstock.core.errors import SpecError
from penstock.spec.document import Document
from penstock.spec.expected import expected, hint_for, masked, shown
from penstock.spec.fields import Field, fields_at
from penstock.spec.nodes import Mapping, Node, Route, Scalar, child
from penstock.spec.subject import about, dotted
from penstock.spec.words import likely

M = TypeVar("M", bound=BaseModel)
_NAMED = {"missing", "extra_forbidden"}


def fit(
    model: type[M],
    data: object,
    document: Document,
    prefix: Route = (),
    subject: str | None = None,
    known: Collection[str] = (),
) -> tuple[M | None, list[SpecError]]:
    """`data` as a `model`, or what is wrong with it.

    `data` stands at `prefix` of the document. `known` are further names that are right there
    (the options that every node has), for the nearest name. `subject` is what messages talk
    of; the node at `prefix` when absent. A number that came from `${NAME}` is text where text
    is expected.
    """
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        again = _as_text(error, data, document, prefix)
        failure = error
    if again is not None:
        try:
            return model.model_validate(again), []
        except ValidationError as error:
            failure = error
    return None, translate(failure, document, prefix, model, subject, known)


def translate(
    error: ValidationError,
    document: Document,
    prefix: Route,
    model: type[BaseModel],
    subject: str | None = None,
    known: Collection[str] = (),
) -> list[SpecError]:
    """The mistakes that pydantic found in what stands at `prefix`; see `fit`."""
    details: list[Any] = error.errors(include_url=False)
    telling = _Telling(document, prefix, model, known, subject)
    found = telling.findings([(tuple(each["loc"]), (), each) for each in details], prefix)
    told = (telling.tell(each) for each in telling.united(list(found)))
    unique = {(each.where, each.message): each for each in told if each is not None}
    return list(unique.values())


def _as_text(
    error: ValidationError, data: object, document: Document, prefix: Route
) -> object | None:
    """`data` with numbers from outside as text where text was expected, if there are any."""
    again = None
    for each in error.errors(include_url=False):
        node = document.find((*prefix, *each["loc"]))
        if each["type"] != "string_type" or not isinstance(node, Scalar) or not node.pieces:
            continue
        again = again if again is not None else copy.deepcopy(data)
        _put(again, each["loc"], node.text)
    return again


def _put(data: Any, loc: Route, value: str) -> None:
    for step in loc[:-1]:
        data = data[step]
    data[loc[-1]] = value


@dataclass(frozen=True)
class _Finding:
    """One mistake: `details` are pydantic's, of one error or of a union's branches."""

    route: Route
    trail: Route
    details: tuple[dict[str, Any], ...]
    name: str | None = None

    @property
    def kind(self) -> str:
        return str(self.details[0]["type"])


_Item = tuple[Route, Route, dict[str, Any]]
"""What is left of pydantic's path, what was walked, the error."""


@dataclass(frozen=True)
class _Telling:
    document: Document
    prefix: Route
    model: type[BaseModel]
    known: Collection[str]
    subject: str | None

    def findings(self, items: list[_Item], route: Route) -> Iterator[_Finding]:
        """The mistakes at and below `route`; of a union's branches the one that was meant."""
        node = self.document.find(route)
        branches: dict[str | int, list[_Item]] = {}
        groups: dict[str | int, list[_Item]] = {}
        for left, trail, details in items:
            if left:
                groups.setdefault(left[0], []).append((left[1:], (*trail, left[0]), details))
            else:
                yield _Finding(route, trail, (details,))
        for step, group in groups.items():
            if node is not None and child(node, step) is not None and not _is_named(group):
                yield from self.findings(group, (*route, step))
            elif step == "[key]" or isinstance(step, int):
                yield from self.findings(group, route)
            elif _is_named(group):
                yield _Finding(route, group[0][1][:-1], (group[0][2],), str(step))
            else:
                branches[step] = group
        yield from self._meant(branches, route)

    def _meant(self, branches: dict[str | int, list[_Item]], route: Route) -> Iterator[_Finding]:
        tried = [list(self.findings(group, route)) for group in branches.values()]
        fitting = [each for each in tried if not any(_at(route, finding) for finding in each)]
        if fitting:
            yield from min(fitting, key=len)
        elif tried:
            heads = [finding for each in tried for finding in each if _at(route, finding)]
            details = tuple(detail for head in heads for detail in head.details)
            yield _Finding(route, heads[0].trail, details)

    def united(self, findings: list[_Finding]) -> Iterator[_Finding]:
        """The findings, without the missing keys that are there under a wrong name."""
        wrong = {(each.route, each.name) for each in findings if each.kind == "extra_forbidden"}
        for each in findings:
            near = self._misnamed(each) if each.kind == "missing" else None
            if near is None:
                yield each
            elif (each.route, near) not in wrong:
                details = ({"type": "extra_forbidden"},)
                yield _Finding(each.route, each.trail, details, near)

    def _misnamed(self, missing: _Finding) -> str | None:
        node = self.document.find(missing.route)
        if not isinstance(node, Mapping):
            return None
        right = {*self._fields(missing.trail), *self.known}
        strange = [name for name in node.names() if name not in right]
        return next((name for name in strange if likely(name, [missing.name or ""])), None)

    def _fields(self, trail: Route) -> dict[str, Field]:
        return fields_at(self.model, trail)

    def tell(self, finding: _Finding) -> SpecError | None:
        """The finding in words; None where its value's own mistake was told."""
        if finding.kind == "extra_forbidden":
            return self._unknown(finding)
        if finding.kind == "missing":
            return self._missing(finding)
        node = self.document.find(finding.route)
        if isinstance(node, Scalar) and node.broken:
            return None
        return self._wrong(finding, node)

    def _about(self, route: Route) -> tuple[str, str]:
        if self.subject is None:
            return about(self.document, route)
        return self.subject, dotted(route[len(self.prefix) :])

    def _holder(self, route: Route) -> str:
        whole, inner = self._about(route)
        return (f'"{inner}" of {whole}' if whole else f'"{inner}"') if inner else whole

    def _unknown(self, finding: _Finding) -> SpecError:
        candidates = [*self._fields(finding.trail), *self.known]
        name = finding.name or ""
        near = likely(name, candidates)
        few = f"known: {', '.join(sorted(candidates))}" if len(candidates) <= 30 else None
        holder = self._holder(finding.route)
        return SpecError(
            f'{holder} has no option "{name}"' if holder else f'a pipeline has no key "{name}"',
            code="unknown-option" if holder else "unknown-key",
            where=self.document.key((*finding.route, name)),
            hint=f'did you mean "{near}"?' if near else few,
        )

    def _missing(self, finding: _Finding) -> SpecError:
        field = self._fields(finding.trail).get(finding.name or "")
        about_it = field.sentence if field else None
        return SpecError(
            f'{self._holder(finding.route) or "a pipeline"} needs "{finding.name}"',
            code="missing-option",
            where=self.document.key(finding.route),
            hint=f"{finding.name}: {about_it}" if about_it else None,
        )

    def _wrong(self, finding: _Finding, node: Node | None) -> SpecError:
        key = finding.trail[-1:] == ("[key]",)
        where = self.document.key if key else self.document.value
        phrase = expected(finding.details)
        holder = self._holder(finding.route)
        if phrase.free:
            message = f"{holder}: {phrase.text}" if holder else phrase.text
        else:
            message = f"{holder} expects {phrase.text}, {shown(node)}"
        return SpecError(
            masked(message, node) if phrase.foreign else message,
            code=phrase.code,
            where=where(finding.route),
            hint=hint_for(finding.details, node),
        )


def _is_named(group: list[_Item]) -> bool:
    return all(not left and details["type"] in _NAMED for left, _, details in group)


def _at(route: Route, finding: _Finding) -> bool:
    return finding.route == route and finding.kind not in _NAMED

"""Pydantic's errors in words for the people who wrote the file, one by one and with places."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from penstock.core.errors import SpecError
from penstock.core.text import did_you_mean
from penstock.spec.document import Document
from penstock.spec.expected import choices, expected, hint_for, masked, shown
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
            there = node is not None and child(node, step) is not None
            if (there or self._is_field(group, step)) and not _is_named(group):
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
                details = ({"type": "extra_forbidden", "right": each.name},)
                yield _Finding(each.route, each.trail, details, near)

    def _misnamed(self, missing: _Finding) -> str | None:
        node = self.document.find(missing.route)
        if not isinstance(node, Mapping):
            return None
        right = self._names(missing)
        strange = [name for name in node.names() if name not in right]
        return next((name for name in strange if likely(name, [missing.name or ""])), None)

    def _is_field(self, group: list[_Item], step: str | int) -> bool:
        """Whether the step is of the model, in data that did not come from the document."""
        return step in self._fields(group[0][1][:-1])

    def _fields(self, trail: Route) -> dict[str, Field]:
        return fields_at(self.model, trail)

    def _names(self, finding: _Finding) -> set[str]:
        """The keys that are right where the finding is."""
        own = set(self._fields(finding.trail))
        return own | set(self.known) if finding.route == self.prefix else own

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
        candidates = self._names(finding)
        name = finding.name or ""
        near = finding.details[0].get("right") or likely(name, candidates)
        few = f"known: {', '.join(sorted(candidates))}" if len(candidates) <= 30 else None
        holder = self._holder(finding.route)
        return SpecError(
            f'{holder} has no option "{name}"' if holder else f'a pipeline has no key "{name}"',
            code="unknown-option" if holder else "unknown-key",
            where=self.document.key((*finding.route, name)),
            hint=f'did you mean "{near}"?' if near else few,
        )

    def _missing(self, finding: _Finding) -> SpecError | None:
        node = self.document.find(finding.route)
        connection = node.get("connection") if isinstance(node, Mapping) else None
        if isinstance(connection, Scalar) and connection.broken:
            return None
        return SpecError(
            f'{self._holder(finding.route) or "a pipeline"} needs "{finding.name}"',
            code="missing-option",
            where=self.document.key(finding.route),
            hint=_type_in_key(finding, node)
            or _sentence(finding.name or "", self._fields(finding.trail).get(finding.name or "")),
        )

    def _wrong(self, finding: _Finding, node: Node | None) -> SpecError:
        if finding.trail[-1:] == ("[key]",):
            return self._wrong_key(finding)
        phrase = expected(finding.details)
        holder = self._holder(finding.route)
        if finding.kind == "model_type" and isinstance(node, Scalar) and node.value is None:
            message = f"{holder} has nothing below it"
        elif phrase.free:
            message = f"{holder}: {phrase.text}" if holder else phrase.text
        elif self._secret(finding):
            message = f"{holder} expects {phrase.text}"
        else:
            message = f"{holder} expects {phrase.text}, {shown(node)}"
        return SpecError(
            masked(message, node) if phrase.foreign else message,
            code=phrase.code,
            where=self.document.value(finding.route),
            hint=self._hint(finding, node),
        )

    def _hint(self, finding: _Finding, node: Node | None) -> str | None:
        if self._secret(finding):
            return "put it between quotes" if isinstance(node, Scalar) else None
        return hint_for(finding.details, node) or self._shape(finding)

    def _secret(self, finding: _Finding) -> bool:
        field = self._field(finding)
        return field is not None and field.secret

    def _field(self, finding: _Finding) -> Field | None:
        """The option whose value is wrong."""
        steps = [step for step in finding.trail if step in finding.route]
        return self._fields(tuple(steps[:-1])).get(str(steps[-1])) if steps else None

    def _wrong_key(self, finding: _Finding) -> SpecError:
        name, holder = finding.route[-1], self._holder(finding.route[:-1])
        allowed = [choice for each in finding.details for choice in choices(each)]
        return SpecError(
            f'{holder} has no option "{name}"' if allowed else f'"{name}" is no key of {holder}',
            code="unknown-option",
            where=self.document.key(finding.route),
            hint=did_you_mean(str(name), allowed) or expected(finding.details).text,
        )

    def _shape(self, finding: _Finding) -> str | None:
        """What a value that is a map has, or what the value is for."""
        if expected(finding.details).code != "wrong-type":
            return None
        fields = self._fields(finding.trail) if finding.kind == "model_type" else {}
        needed = [name for name, field in fields.items() if field.required]
        if needed:
            return "it needs " + " and ".join(f'"{name}"' for name in needed)
        if fields:
            return f"its options are {', '.join(fields)}"
        field = self._field(finding)
        return _sentence(str(finding.route[-1]), field)


def _sentence(name: str, field: Field | None) -> str | None:
    return f"{name}: {field.sentence}" if field and field.sentence else None


def _type_in_key(missing: _Finding, node: Node | None) -> str | None:
    """A hint where `clicks: {kafka: {...}}` is meant to say the type."""
    if missing.name != "type" or not isinstance(node, Mapping) or len(node.entries) != 1:
        return None
    entry = node.entries[0]
    if not isinstance(entry.value, Mapping):
        return None
    return f'write "type: {entry.name}", and its options beside it'


def _is_named(group: list[_Item]) -> bool:
    return all(not left and details["type"] in _NAMED for left, _, details in group)


def _at(route: Route, finding: _Finding) -> bool:
    return finding.route == route and finding.kind not in _NAMED

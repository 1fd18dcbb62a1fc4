"""Errors of pydantic in the terms of a pipeline file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel

from penstock.core.errors import SpecError
from penstock.core.text import did_you_mean, did_you_mean_one_of
from penstock.spec.fields import Field, choices_at, fields_at
from penstock.spec.findings import Finding
from penstock.spec.location_text import describe_location, dotted
from penstock.spec.source_map import Route, SourceMap, SourceValue
from penstock.spec.suggestions import closest_node, closest_option
from penstock.spec.value_descriptions import (
    allowed_values,
    describe_expected,
    describe_found,
    mask_substitutions,
    suggest_fix,
)  # fmt: skip


def _is_composite_rule(finding: Finding, value: SourceValue | None) -> bool:
    """Returns whether a validator rejected the content of a map or list, not the type."""
    composite = value is not None and not value.is_scalar
    return composite and any(detail["type"] == "value_error" for detail in finding.details)


@dataclass(frozen=True)
class ErrorFormatter:
    """A formatter of pydantic errors: one error for each wrong key or value, with its location."""

    source_map: SourceMap
    prefix: Route
    model: type[BaseModel]
    known: Collection[str]
    subject: str | None

    def merge_misnamed(self, findings: list[Finding]) -> Iterator[Finding]:
        """Yields the findings, with a missing and a misspelled key as one error."""
        extra = {(finding.route, finding.name) for finding in findings if finding.is_extra}
        for finding in findings:
            misspelled = self._misspelled_key(finding) if finding.kind == "missing" else None
            if misspelled is None:
                yield finding
            elif (finding.route, misspelled) not in extra:
                details = ({"type": "extra_forbidden", "closest": finding.name},)
                yield Finding(finding.route, finding.trail, details, misspelled)

    def _misspelled_key(self, missing: Finding) -> str | None:
        value = self.source_map.find(missing.route)
        if value is None or not value.is_map:
            return None
        known = self._names(missing)
        unknown = [name for name in value.data if name not in known]
        return next((name for name in unknown if closest_option(name, [missing.name or ""])), None)

    def _fields(self, trail: Route) -> dict[str, Field]:
        return fields_at(self.model, trail)

    def _names(self, finding: Finding) -> set[str]:
        """Returns the valid keys at the route of a finding."""
        names = set(self._fields(finding.trail))
        return names | set(self.known) if finding.route == self.prefix else names

    def format(self, finding: Finding) -> SpecError | None:
        """Returns the error of a finding; None if an error of its value was reported already."""
        if finding.is_extra:
            return self._unknown_key(finding)
        if finding.kind == "missing":
            return self._missing_key(finding)
        if finding.kind == "union_tag_not_found":
            return self._missing_tag(finding)
        if finding.kind == "union_tag_invalid":
            finding = self._at_tag(finding)
        value = self.source_map.find(finding.route)
        if value is not None and value.invalid:
            return None
        return self._wrong_value(finding, value)

    def _describe(self, route: Route) -> tuple[str, str]:
        if self.subject is None:
            return describe_location(self.source_map, route)
        return self.subject, dotted(route[len(self.prefix) :])

    def _holder(self, route: Route) -> str:
        part, inner = self._describe(route)
        return (f'"{inner}" of {part}' if part else f'"{inner}"') if inner else part

    def _unknown_key(self, finding: Finding) -> SpecError:
        candidates = self._names(finding)
        name = finding.name or ""
        closest = finding.details[0].get("closest") or closest_option(name, candidates)
        names = f"known: {', '.join(sorted(candidates))}" if len(candidates) <= 30 else None
        holder = self._holder(finding.route)
        value = self.source_map.find((*finding.route, name))
        similar = [closest] if closest else []
        similar += [other for other in (value.similar if value else ()) if other not in similar]
        return SpecError(
            f'{holder} has no option "{name}"' if holder else f'unknown key "{name}"',
            code="unknown-option" if holder else "unknown-key",
            where=self.source_map.key((*finding.route, name)),
            hint=did_you_mean_one_of(similar) or self._comma_in_text(finding, value) or names,
        )

    def _comma_in_text(self, finding: Finding, value: SourceValue | None) -> str | None:
        """Returns a hint for a key that is the rest of a text: `{sql: SELECT a, b FROM c}`."""
        holder = self.source_map.find(finding.route)
        if value is None or not value.is_empty or holder is None or not holder.inline:
            return None
        return "Put texts with a comma in quotes: a comma separates the options within {...}."

    def _missing_key(self, finding: Finding) -> SpecError | None:
        if self._has_wrong_connection(finding.route):
            return None
        value = self.source_map.find(finding.route)
        return SpecError(
            f'{self._holder(finding.route) or "a pipeline"} needs "{finding.name}"',
            code="missing-option",
            where=self.source_map.key(finding.route),
            hint=_type_in_key(finding, value)
            or self._other_node(finding)
            or _sentence(finding.name or "", self._fields(finding.trail).get(finding.name or "")),
        )

    def _other_node(self, missing: Finding) -> str | None:
        """Returns a hint for a node without a type, where another file has a similar name."""
        if missing.name != "type" or len(missing.route) != 2:
            return None
        name = closest_node(self.source_map, missing.route)
        return did_you_mean_one_of([name]) if name else None

    def _missing_tag(self, finding: Finding) -> SpecError:
        """Returns the error of a map without the key that selects the branch of a union."""
        name = _discriminator(finding)
        choices = choices_at(self.model, finding.trail, name)
        value = self.source_map.find(finding.route)
        keys = value.data if value is not None and value.is_map else ()
        misspelled = next((key for key in keys if closest_option(key, [name])), None)
        return SpecError(
            f'{self._holder(finding.route)} needs "{name}"',
            code="missing-option",
            where=self.source_map.key(
                (*finding.route, misspelled) if misspelled else finding.route
            ),
            hint=f'write "{name}" instead of "{misspelled}"'
            if misspelled
            else f"set {name} to one of {', '.join(choices)}",
        )

    def _at_tag(self, finding: Finding) -> Finding:
        """Returns the finding at the key that selects the branch of a union, if it is in a map."""
        route = (*finding.route, _discriminator(finding))
        return finding if self.source_map.find(route) is None else replace(finding, route=route)

    def _has_wrong_connection(self, route: Route) -> bool:
        """Returns whether the options of the connection of a node are unknown."""
        connection = self.source_map.find((*route, "connection"))
        if connection is None or connection.is_empty:
            return False
        if connection.invalid or not isinstance(connection.data, str):
            return True
        options = self.source_map.find(("connections", connection.data))
        return options is None or not options.is_map

    def _wrong_value(self, finding: Finding, value: SourceValue | None) -> SpecError:
        if finding.trail[-1:] == ("[key]",):
            return self._wrong_key(finding)
        phrase = describe_expected(finding.details)
        holder = self._holder(finding.route)
        if finding.kind == "model_type" and value is not None and value.data is None:
            message = f"{holder} is empty; expected a map"
        elif phrase.free:
            message = f"{holder}: {phrase.text}" if holder else phrase.text
        elif self._secret(finding) or _is_composite_rule(finding, value):
            message = f"{holder} expects {phrase.text}"
        else:
            message = f"{holder} expects {phrase.text}, {describe_found(value)}"
        return SpecError(
            mask_substitutions(message, value) if phrase.foreign else message,
            code=phrase.code,
            where=self.source_map.value(finding.route),
            hint=self._hint(finding, value),
        )

    def _hint(self, finding: Finding, value: SourceValue | None) -> str | None:
        if self._secret(finding):
            return "put the value in quotes" if value is not None and value.is_scalar else None
        return (
            suggest_fix(finding.details, value)
            or self._map_in_script(finding, value)
            or self._describe_field(finding)
        )

    def _map_in_script(self, finding: Finding, value: SourceValue | None) -> str | None:
        """Returns a hint for a text in place of a map in SQL, which has an option for each key."""
        if not finding.expects_map or value is None or not value.is_scalar:
            return None
        if Path(self.source_map.key(finding.route).file).suffix != ".sql":
            return None
        fields = self._fields(finding.trail) if finding.kind == "model_type" else {}
        keys = [name for name, field in fields.items() if field.required] or list(fields)
        option = dotted((*finding.route[len(self.prefix) :], keys[0] if keys else "NAME"))
        return f"write each key of the map as an option: '{option}' = ..."

    def _secret(self, finding: Finding) -> bool:
        field = self._field(finding)
        return field is not None and field.secret

    def _field(self, finding: Finding) -> Field | None:
        """Returns the option that has the wrong value."""
        steps = [step for step in finding.trail if step in finding.route]
        return self._fields(tuple(steps[:-1])).get(str(steps[-1])) if steps else None

    def _wrong_key(self, finding: Finding) -> SpecError:
        name, holder = finding.route[-1], self._holder(finding.route[:-1])
        allowed = [value for detail in finding.details for value in allowed_values(detail)]
        return SpecError(
            f'{holder} has no option "{name}"'
            if allowed
            else f'"{name}" is not a valid key of {holder}',
            code="unknown-option",
            where=self.source_map.key(finding.route),
            hint=did_you_mean(str(name), allowed)
            or f"write {describe_expected(finding.details).text}",
        )

    def _describe_field(self, finding: Finding) -> str | None:
        """Returns the options of a map, or the documentation of a field."""
        if describe_expected(finding.details).code != "wrong-type":
            return None
        fields = self._fields(finding.trail) if finding.kind == "model_type" else {}
        required = [name for name, field in fields.items() if field.required]
        if required:
            return "set " + " and ".join(f'"{name}"' for name in required)
        if fields:
            return f"known: {', '.join(fields)}"
        field = self._field(finding)
        return _sentence(str(finding.route[-1]), field)


def _discriminator(finding: Finding) -> str:
    return str(finding.details[0]["ctx"]["discriminator"]).strip("'")


def _sentence(name: str, field: Field | None) -> str | None:
    return f"{name}: {field.sentence}" if field and field.sentence else None


def _type_in_key(missing: Finding, value: SourceValue | None) -> str | None:
    """Returns a hint for a type in place of a key: `clicks: {kafka: {...}}`."""
    if missing.name != "type" or value is None or not value.is_map or len(value.data) != 1:
        return None
    ((name, options),) = value.data.items()
    if not isinstance(options, dict):
        return None
    return f'write "type: {name}", and the options on the same level'

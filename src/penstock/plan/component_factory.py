"""Creation of components and formats from options, with collected errors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from penstock.core.errors import PenstockError, PlanError, flatten_errors
from penstock.sdk import Capability, Component, Context, Format, registry
from penstock.sdk.registry import Kind
from penstock.spec.front_end import document_front_end
from penstock.spec.model_validation import validate_model
from penstock.spec.source_map import Route, SourceMap, locate_error
from penstock.spec.valid_part import invalid_values, validate_part
from penstock.sql.user_functions import NO_FUNCTIONS, UserFunctions

T = TypeVar("T")


@dataclass
class ComponentFactory:
    """A factory of components with their formats. Appends its errors to `errors`."""

    pipeline: str
    source_map: SourceMap
    state: Path
    errors: list[PenstockError] = field(default_factory=list)
    functions: UserFunctions = NO_FUNCTIONS

    def _create(
        self, route: Route, kind: Kind, type_: str, options: dict[str, Any], context: Context,
        subject: str, known: list[str],
    ) -> Component[Any] | None:  # fmt: skip
        type_route = (*route, "type") if self.source_map.find((*route, "type")) else route
        if any(invalid_values(self.source_map, type_route)):
            return None
        value = self.source_map.find(type_route)
        try:
            component_type = registry.find(kind, type_, value.similar if value else ())
        except PenstockError as error:
            error.where = self.source_map.value(type_route)
            if error.code == "unknown-type" and not (error.hint or "").startswith("did you mean"):
                hints = document_front_end(error.where.file).hints
                error.hint = hints.get("unknown-type", error.hint)
            self.errors.append(error)
            return None
        config, errors = validate_model(
            component_type.config_type, options, self.source_map, route, subject=subject,
            known=known,
        )  # fmt: skip
        self.errors += errors
        if config is not None:
            return self._collect_errors(route, lambda: component_type.create(config, context))
        part, _ = validate_part(component_type.config_type, options)
        with suppress(PenstockError):
            return component_type.create(part, context) if part is not None else None
        return None

    def _check_format(self, route: Route, spec: str | dict[str, Any]) -> Format[Any] | None:
        """Checks the type and the options of a format; returns the format without a topic."""
        return self._create_format(route, spec, Context(self.pipeline, base=self._base(route)))

    def _create_format(
        self, route: Route, spec: str | dict[str, Any], context: Context
    ) -> Format[Any] | None:
        options = {} if isinstance(spec, str) else {k: v for k, v in spec.items() if k != "type"}
        type_ = spec if isinstance(spec, str) else spec.get("type")
        if not isinstance(type_, str):
            known = ", ".join(registry.types("format"))
            self.add_error(
                route, "expected the type of a format", code="missing-option",
                hint=f"Set type to one of {known}.",
            )  # fmt: skip
            return None
        count = len(self.errors)
        format_ = self._create(
            route, "format", type_, options, context, f"format {type_}", ["type"]
        )
        is_valid = len(self.errors) == count and not any(invalid_values(self.source_map, route))
        return format_ if isinstance(format_, Format) and is_valid else None

    def _make_format(
        self, route: Route, spec: str | dict[str, Any], node: Component[Any]
    ) -> Format[Any] | None:
        """Creates the format of a node; returns None after an error."""
        format_ = self._create_format(route, spec, replace(node.context, topic=node.topic()))
        count = len(self.errors)
        if format_ is not None:
            self._collect_errors(route, format_.validate)
        if format_ is None or len(self.errors) > count:
            return None
        return format_ if self._encodes_messages(route, spec, node, format_) else None

    def _encodes_messages(
        self, route: Route, spec: str | dict[str, Any], node: Component[Any], format_: Format[Any]
    ) -> bool:
        """Returns whether the format of a node of messages is one. Reports other formats."""
        if Capability.BYTES not in node.capabilities:
            return True
        if format_.messages:
            count = len(self.errors)
            self._collect_errors(route, format_.check_messages)
            return len(self.errors) == count
        type_ = spec if isinstance(spec, str) else spec["type"]
        self.add_error(
            route, f"expected a format of messages, found {type_}, a format of files",
            code="no-messages", hint=f"Set format to one of {', '.join(message_formats())}.",
        )  # fmt: skip
        return False

    def _collect_errors(self, route: Route, call: Callable[[], T]) -> T | None:
        """Returns the result of `call`. Returns None after an error, and collects the error."""
        try:
            return call()
        except PenstockError as error:
            for inner in flatten_errors(error):
                inner.where = locate_error(self.source_map, inner, route)
                self.errors.append(inner)
            return None

    def _base(self, route: Route) -> Path:
        return self.source_map.base(route)

    def add_error(
        self, route: Route, message: str, *, code: str, hint: str | None, of_key: bool = False
    ) -> None:
        """Adds an error at a value, or at its key."""
        where = self.source_map.key(route) if of_key else self.source_map.value(route)
        self.errors.append(PlanError(message, code=code, hint=hint, where=where))


def message_formats() -> list[str]:
    """Returns the format types for message payloads."""
    formats = registry.importable("format")
    return [name for name, format_ in formats if getattr(format_, "messages", False)]

"""From what the user wrote of a node to its component, with format, columns and metadata."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa

from penstock.core.errors import PenstockError, PlanError, each_of
from penstock.core.text import did_you_mean
from penstock.sdk import Capability, Component, Context, Format, Sink, Source, registry
from penstock.sdk.kit.ddl import arrow_schema
from penstock.sdk.registry import Kind
from penstock.spec.document import Document
from penstock.spec.fields import fields_at
from penstock.spec.models import DeadLetterSpec, SinkSpec, SourceSpec, TransformSpec
from penstock.spec.validate import fit

Spec = SourceSpec | TransformSpec | SinkSpec | DeadLetterSpec
Route = tuple[str | int, ...]
T = TypeVar("T")


@dataclass
class Components:
    """Makes the components of one pipeline; what is wrong with them gathers in `mistakes`."""

    pipeline: str
    document: Document
    state: Path
    mistakes: list[PenstockError] = field(default_factory=list)

    def make(
        self, route: Route, kind: Literal["source", "transform", "sink"], name: str, spec: Spec
    ) -> Component[Any] | None:
        """The component of a node, ready to be used; None if something is wrong with it."""
        before = len(self.mistakes)
        component = self._component(route, kind, name, spec)
        if isinstance(spec, SourceSpec):
            declared = self._declared(route, spec)
            if isinstance(component, Source):
                self._prepare_source(component, route, spec, declared)
        elif isinstance(component, Sink) and isinstance(spec, SinkSpec | DeadLetterSpec):
            self._prepare_sink(component, route, spec)
        if component is not None and len(self.mistakes) == before:
            self._guarded(route, component.examine)
        return component if len(self.mistakes) == before else None

    def _component(self, route: Route, kind: Kind, name: str, spec: Spec) -> Component[Any] | None:
        subject = f'{kind} "{name}" (type: {spec.type})'
        known = list(fields_at(type(spec), ()))
        # A table that is read once remembers nothing of what it has read.
        static = isinstance(spec, SourceSpec) and spec.static
        state = None if static else self.state / "nodes" / name
        context = Context(self.pipeline, name, state, self._base(route))
        return self._made(route, kind, spec.type, spec.options, context, subject, known)

    def _made(
        self, route: Route, kind: Kind, type_: str, options: dict[str, Any], context: Context,
        subject: str, known: list[str],
    ) -> Component[Any] | None:  # fmt: skip
        try:
            found = registry.find(kind, type_)
        except PenstockError as error:
            error.where = self.document.value(route)
            if self.document.find((*route, "type")) is not None:
                error.where = self.document.value((*route, "type"))
            self.mistakes.append(error)
            return None
        config, wrong = fit(
            found.config_type, options, self.document, route, subject=subject, known=known
        )
        self.mistakes += wrong
        return None if config is None else found.of(config, context)

    def _format(
        self, route: Route, given: str | dict[str, Any], node: Component[Any]
    ) -> Format[Any] | None:
        options = {} if isinstance(given, str) else {k: v for k, v in given.items() if k != "type"}
        type_ = given if isinstance(given, str) else given.get("type")
        if not isinstance(type_, str):
            known = ", ".join(registry.types("format"))
            self._mistake(route, "a format needs a type", "missing-option", f"type: {known}")
            return None
        subject = f"format {type_}"
        context = replace(node.context, topic=node.topic())
        made = self._made(route, "format", type_, options, context, subject, ["type"])
        before = len(self.mistakes)
        if made is not None:
            self._guarded(route, made.examine)
        if not isinstance(made, Format) or len(self.mistakes) > before:
            return None
        if Capability.BYTES in node.capabilities and not made.messages:
            self._mistake(
                route, f"{type_} is for files, and a payload needs a format of messages",
                "no-messages", f"known: {', '.join(_of_messages())}",
            )  # fmt: skip
            return None
        return made

    def _prepare_source(
        self, source: Source[Any], route: Route, spec: SourceSpec, declared: pa.Schema | None
    ) -> None:
        given = spec.format if spec.format is not None else source.format_for()
        if given is not None:
            source.format = self._format((*route, "format"), given, source)
        elif Capability.BYTES in source.capabilities:
            self._mistake(
                route, "a format is missing: how do payloads become rows?", "missing-option",
                f"add format: {', '.join(_of_messages())}",
            )  # fmt: skip
        source.columns = declared
        if spec.columns is None and source.format is not None:
            source.columns = self._guarded((*route, "format"), source.format.declared)
        if spec.columns is None and source.columns is None:
            source.columns = self._guarded(route, source.schema)
        source.metadata_columns = self._metadata(source, route, spec)

    def _declared(self, route: Route, spec: SourceSpec) -> pa.Schema | None:
        columns = spec.columns
        if columns is None:
            return None
        return self._guarded((*route, "schema"), lambda: arrow_schema(columns))

    def _metadata(self, source: Source[Any], route: Route, spec: SourceSpec) -> dict[str, str]:
        wanted = spec.metadata
        columns = wanted if isinstance(wanted, dict) else {name: name for name in wanted}
        known = source.metadata().names
        for column, name in columns.items():
            if name not in known:
                key: str | int = column if isinstance(wanted, dict) else wanted.index(name)
                self._mistake(
                    (*route, "metadata", key), f'there is no metadata "{name}"',
                    "unknown-metadata",
                    did_you_mean(name, known) if known else "this source has none",
                )  # fmt: skip
        return columns

    def _prepare_sink(self, sink: Sink[Any], route: Route, spec: SinkSpec | DeadLetterSpec) -> None:
        given = spec.format if spec.format is not None else sink.format_for()
        if given is not None:
            sink.format = self._format((*route, "format"), given, sink)
        if isinstance(spec, SinkSpec):
            sink.mode = spec.mode or "append"
            sink.primary_key = tuple(spec.primary_key)

    def _guarded(self, route: Route, call: Callable[[], T]) -> T | None:
        try:
            return call()
        except PenstockError as error:
            for each in each_of(error):
                each.where = self.document.place_of(each, route)
                self.mistakes.append(each)
            return None

    def _base(self, route: Route) -> Path:
        node = self.document.find(route)
        return node.base if node is not None else self.document.root.base

    def _mistake(self, route: Route, message: str, code: str, hint: str | None) -> None:
        where = self.document.value(route)
        self.mistakes.append(PlanError(message, code=code, hint=hint, where=where))


def _of_messages() -> list[str]:
    """The types of formats that a payload can have."""
    found = {name: registry.find("format", name) for name in registry.types("format")}
    return [name for name, each in found.items() if getattr(each, "messages", False)]

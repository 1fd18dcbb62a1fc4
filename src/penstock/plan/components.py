"""Creation of the components of nodes, with format, columns and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from penstock.core.location import Location
from penstock.core.names import written_name
from penstock.plan.component_factory import ComponentFactory, message_formats
from penstock.plan.lookups import check_stream, prepare_lookup
from penstock.plan.metadata_columns import check_metadata, metadata_columns
from penstock.plan.operation_columns import source_operation, with_operation
from penstock.sdk import (
    Capability,
    Component,
    Context,
    Format,
    ReplayableSource,
    Sink,
    Source,
    Transform,
)
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.columns.names import check_distinct
from penstock.sdk.operations import OPERATION_COLUMN
from penstock.sdk.phases import PhasedSource
from penstock.sdk.registry import Kind
from penstock.sdk.transform import PayloadTransform
from penstock.spec.fields import fields_at
from penstock.spec.model_validation import validate_model
from penstock.spec.node_models import (
    DeadLetterSpec,
    PhaseSpec,
    SideOutputSpec,
    SinkSpec,
    SourceSpec,
    TransformSpec,
)
from penstock.spec.source_map import Route
from penstock.spec.valid_part import invalid_values

Spec = SourceSpec | TransformSpec | SinkSpec | SideOutputSpec | DeadLetterSpec
_OF_PHASES = {"columns", "primary_key", "operation_column"}
"""The options of a source that its phases have too."""


class Components(ComponentFactory):
    """The factory of the components of the nodes of one pipeline."""

    def make(
        self, route: Route, kind: Literal["source", "transform", "sink", "side_output"], name: str,
        spec: Spec,
    ) -> Component[Any] | None:  # fmt: skip
        """Creates the component of a node.

        With wrong options the component is a stand-in without these options, or None. A value
        that an error was reported for already is a wrong option too.
        """
        count = len(self.errors)
        component = self._create_for_node(route, kind, name, spec)
        usable = len(self.errors) == count and not any(invalid_values(self.source_map, route))
        if isinstance(spec, SourceSpec):
            declared = self._declared_columns(route, spec)
            if isinstance(component, PhasedSource):
                phases = self._make_phases(component, route, name, spec, declared)
                component.set_phases(phases)
                component.starts = self._make_starts(component, route, name)
                usable = usable and len(self.errors) == count
            if isinstance(component, Source):
                self._prepare_source(component, route, spec, declared, usable)
        elif isinstance(component, Sink) and isinstance(spec, SinkSpec | DeadLetterSpec):
            self._prepare_sink(component, route, spec, usable)
        elif isinstance(component, PayloadTransform):
            self._prepare_payloads(component, route)
        format_ = None if isinstance(spec, TransformSpec | SideOutputSpec) else spec.format
        if component is None and format_ is not None:
            self._check_format((*route, "format"), format_)
        if isinstance(component, Transform):
            component.places = self._places(route, component)
        if component is not None and usable:
            self._collect_errors(route, component.validate)
        return component

    def _places(self, route: Route, transform: Transform[Any]) -> dict[str, list[Location]]:
        """Returns the location of each line of the options with code."""
        texts = {
            option: self.source_map.find((*route, option)) for option in transform.code_options
        }
        return {
            option: [
                replace(self.source_map.inside((*route, option), line, 1), text="")
                for line in range(1, len(value.text.splitlines()) + 1)
            ]
            for option, value in texts.items()
            if value is not None
        }

    def _make_phases(
        self, source: PhasedSource[Any], route: Route, name: str, spec: SourceSpec,
        declared: pa.Schema | None,
    ) -> list[ReplayableSource[Any]]:  # fmt: skip
        """Creates the sources of the phases of a source, without those with errors."""
        phases, specs = [], source.phase_options()
        shared = spec.model_dump(include=_OF_PHASES, by_alias=True)
        for index, options in enumerate(specs):
            at, subject = (*route, "phases", index), f'phase {index + 1} of "{written_name(name)}"'
            context = replace(source.context, state=source.phase_state(index + 1))
            made = self._make_part(
                at, subject, options, context, shared, declared, ends=index < len(specs) - 1
            )
            phases += [made] if made is not None else []
        return phases

    def _make_starts(
        self, source: PhasedSource[Any], route: Route, name: str
    ) -> ReplayableSource[Any] | None:
        """Creates the source of the start of the last phase; None without it or after an error."""
        options = source.start_options()
        if options is None:
            return None
        at, subject = (*route, "start_offsets"), f'start_offsets of "{written_name(name)}"'
        context = replace(source.context, state=source.phase_state(0))
        return self._make_part(at, subject, options, context, {}, None, ends=True)

    def _make_part(
        self, at: Route, subject: str, options: Mapping[str, Any], context: Context,
        shared: Mapping[str, Any], declared: pa.Schema | None, *, ends: bool,
    ) -> ReplayableSource[Any] | None:  # fmt: skip
        """Creates a source within another one, with `ends` one that ends. None after an error."""
        phase, errors = validate_model(PhaseSpec, options, self.source_map, at, subject)
        self.errors += errors
        if phase is None:
            return None
        context = replace(context, base=self._base(at))
        made = self._make_phase(at, f"{subject} (type: {phase.type})", phase, context)
        if made is None:
            return None
        if ends and not made.is_bounded():
            self.add_error(
                at, f"{subject} does not end; only the last phase may be unbounded",
                code="unbounded-phase",
                hint="Make it the last phase, or set options with an end.",
            )  # fmt: skip
            return None
        of_phase = SourceSpec(type=phase.type, format=phase.format, **shared)
        count = len(self.errors)
        self._prepare_source(made, at, of_phase, declared, usable=True)
        self._collect_errors(at, made.validate)
        return made if len(self.errors) == count else None

    def _make_phase(
        self, route: Route, subject: str, spec: PhaseSpec, context: Context
    ) -> ReplayableSource[Any] | None:
        count, known = len(self.errors), list(fields_at(PhaseSpec, ()))
        made = self._create(route, "source", spec.type, spec.options, context, subject, known)
        if made is None or len(self.errors) > count:
            return None
        if not isinstance(made, ReplayableSource) or isinstance(made, PhasedSource):
            self.add_error(
                (*route, "type"), f"a source of type {spec.type} cannot be a phase",
                code="invalid-option",
                hint="Use a source whose records can be read again, such as files.",
            )  # fmt: skip
            return None
        return made

    def _create_for_node(
        self, route: Route, kind: Kind, name: str, spec: Spec
    ) -> Component[Any] | None:
        subject = f'{kind.replace("_", " ")} "{written_name(name)}" (type: {spec.type})'
        known = list(fields_at(type(spec), ()))
        # A table is read as a whole and needs no state.
        static = isinstance(spec, SourceSpec) and (spec.static or spec.lookup_table is not None)
        state = None if static else self.state / "nodes" / name
        project = self.source_map.base(())
        base = self._base(route)
        lookup = isinstance(spec, SourceSpec) and spec.lookup_table is not None
        inputs = tuple(spec.inputs) if isinstance(spec, TransformSpec) else ()
        context = Context(
            self.pipeline, name, state, base, project, functions=self.functions, lookup=lookup,
            inputs=inputs,
        )  # fmt: skip
        return self._create(route, kind, spec.type, spec.options, context, subject, known)

    def _prepare_source(
        self, source: Source[Any], route: Route, spec: SourceSpec, declared: pa.Schema | None,
        usable: bool,
    ) -> None:  # fmt: skip
        """Sets format, columns and metadata. Of a stand-in only its own options are checked."""
        source.columns, source.primary_key = declared, tuple(spec.primary_key)
        if usable and spec.lookup_table is not None:
            self._collect_errors((*route, "lookup"), lambda: prepare_lookup(source, spec))
        elif usable:
            self._collect_errors(route, lambda: check_stream(source, spec))
        if not usable:
            source.format = self._stand_in_format(source, route, spec)
            source.metadata_columns = metadata_columns(spec)
            return
        format_ = spec.format if spec.format is not None else source.default_format()
        if format_ is not None:
            source.format = self._make_format((*route, "format"), format_, source)
        elif Capability.BYTES in source.capabilities:
            self.add_error(
                route, "a format is missing", code="missing-option",
                hint=f"Set format to one of {', '.join(message_formats())}.",
            )  # fmt: skip
        if format_ is None or source.format is not None:
            self._collect_errors(route, source.check_format)
        if spec.columns is None and source.format is not None:
            source.columns = self._collect_errors((*route, "format"), source.format.declared_schema)
        if declared is not None and source.format is not None:
            check = partial(source.format.check_columns, declared)
            self._collect_errors((*route, "format"), check)
        if spec.columns is None and source.columns is None:
            source.columns = self._collect_errors(route, source.schema)
        if source.format is not None and source.format.carries_operations:
            source.format.operation_column = source_operation(spec, source) or OPERATION_COLUMN
        source.operation_column = source_operation(spec, source) or OPERATION_COLUMN
        columns = source.columns
        if columns is not None:
            self._collect_errors(route, lambda: check_distinct(columns))
            source.columns = self._collect_errors(
                route, lambda: with_operation(columns, spec, source)
            )
        source.metadata_columns = metadata_columns(spec)
        self._collect_errors(route, lambda: check_metadata(source, spec))

    def _prepare_payloads(self, transform: PayloadTransform[Any], route: Route) -> None:
        """Sets the format of a transform. Its options, which may be secrets, leave the config."""
        format_ = getattr(transform.config, "format", None)
        if format_ is not None:
            transform.format = self._make_format((*route, "format"), format_, transform)
        if isinstance(format_, dict):
            type_ = {"format": str(format_.get("type"))}
            transform.config = transform.config.model_copy(update=type_)

    def _stand_in_format(
        self,
        node: Source[Any] | Sink[Any],
        route: Route,
        spec: SourceSpec | SinkSpec | DeadLetterSpec,
    ) -> Format[Any] | None:
        """Returns the format of a stand-in: the format in its options, or the default."""
        if spec.format is not None:
            route = (*route, "format")
            format_ = self._check_format(route, spec.format)
            if format_ is not None:
                self._encodes_messages(route, spec.format, node, format_)
            return format_
        default = node.default_format()
        return self._check_format((*route, "format"), default) if default is not None else None

    def _declared_columns(self, route: Route, spec: SourceSpec) -> pa.Schema | None:
        columns = spec.columns
        if columns is None:
            return None
        route = (*route, "schema")
        if isinstance(columns, dict):
            types = [
                self._collect_errors((*route, name), partial(arrow_schema, {name: type_}))
                for name, type_ in columns.items()
            ]
            if None in types:
                return None
        return self._collect_errors(route, lambda: arrow_schema(columns))

    def _prepare_sink(
        self, sink: Sink[Any], route: Route, spec: SinkSpec | DeadLetterSpec, usable: bool
    ) -> None:
        format_ = spec.format if spec.format is not None else sink.default_format()
        if not usable:
            sink.format = self._stand_in_format(sink, route, spec)
        elif format_ is not None:
            sink.format = self._make_format((*route, "format"), format_, sink)
        if isinstance(spec, SinkSpec):
            sink.mode = spec.mode or "append"
            sink.primary_key = tuple(spec.primary_key)

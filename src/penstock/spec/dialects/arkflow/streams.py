"""A stream as sources, transforms and sinks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.core.names import quote_name
from penstock.spec.dialects.arkflow import inputs, outputs, processors
from penstock.spec.dialects.arkflow.buffers import BUFFERS, BufferPlan, pace, read_buffer
from penstock.spec.dialects.arkflow.codecs import read_codec
from penstock.spec.dialects.arkflow.components import read_component
from penstock.spec.dialects.arkflow.file_inputs import FILE, FORMATS
from penstock.spec.dialects.arkflow.metadata import metadata_of
from penstock.spec.dialects.arkflow.names import NodeNames
from penstock.spec.dialects.arkflow.node_rows import (
    batch_times,
    input_rows,
    output_rows,
    select_inputs,
)
from penstock.spec.dialects.arkflow.plans import VALUE, InputPlan, OutputPlan
from penstock.spec.dialects.options.declarations import Option, Options, options, unneeded
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree, to_node
from penstock.spec.tree.nodes import Node, ScalarNode, SequenceNode, scalars

_WAL = "messages are in the journal, and offsets in the checkpoint, of the run"
STREAM: Options = options(
    "id", Option("input", "any", True), Option("pipeline", "map", True),
    Option("output", "any", True), "error_output:any", "buffer:any", "temporary:list",
    unneeded("durability", _WAL), unneeded("state", _WAL),
)  # fmt: skip
"""The options of a stream."""
PIPELINE: Options = options(
    unneeded("thread_num", "Spark divides the work among its tasks"), "processors:any"
)
"""The options of `pipeline`."""
_INPUTS: dict[str, Options] = {**inputs.INPUTS, **dict.fromkeys(FORMATS, FILE)}
Sections = dict[str, dict[str, Tree]]


class StreamReader:
    """Makes the nodes of a stream. `prefix` is that of their names."""

    def __init__(self, reading: Reading, prefix: str, names: NodeNames) -> None:
        self.reading, self.prefix, self.findings = reading, prefix, reading.findings
        self._all_names = names
        self._names: dict[str, str] = {}
        self._sections: Sections = {"sources": {}, "transforms": {}, "sinks": {}}

    def read(self) -> Sections:
        """Returns the nodes by section."""
        mentions = any(
            "__meta_" in scalar.written
            for name in ("pipeline", "output", "error_output", "buffer")
            if (node := self.reading.get(name)) is not None
            for scalar in scalars(node)
        )
        plans = self._inputs(mentions)
        pipeline = self.reading.map("pipeline", PIPELINE, "pipeline")
        steps, columns, seconds = self._steps(pipeline)
        buffer = self._buffer()
        output = self._output("output", columns)
        errors = self._output("error_output", None)
        if not plans or output is None:
            return self._sections
        if output.infer:
            self._sample(plans)
        if buffer is not None:
            buffer.adapt(plans)
            buffer.check_tables(plans, self.findings)
            if buffer.never_ends(plans):
                self.findings.warn(
                    "the session never ends: the input has a message within each gap",
                    self.reading.where("buffer"), code="unused-option",
                    hint="use tumbling_window",
                )  # fmt: skip
            seconds = buffer.seconds
        batch = {"interval": seconds, "gap": buffer.gap if buffer is not None else None}
        if pace(plans, seconds, whole=buffer is not None and buffer.is_whole):
            batch = {}
        source = self._sources(plans)
        failures = output_rows(errors, "error_") if errors else None
        steps_node: dict[str, Tree] = {
            "type": "steps", "from": source,
            "inputs": self._placed(input_rows(plans, buffer), "input"),
            "window": self._placed(buffer.window if buffer is not None else None, "buffer"),
            "steps": steps or None, "output": self._placed(output_rows(output), "output"),
            "failures": self._placed(failures, "error_output"),
        }  # fmt: skip
        self._add("transforms", "pipeline", steps_node, self.reading.get("pipeline"))
        times = batch_times(batch)
        if times and buffer is not None:
            times["min_records"] = buffer.records(plans)
        self._sinks(output, errors, times)
        return self._sections

    def _name(self, part: str) -> str:
        """Returns the name of the node of a part."""
        if part not in self._names:
            self._names[part] = self._all_names.make(f"{self.prefix}{part}")
        return self._names[part]

    def _placed(self, tree: Tree, part: str) -> Tree:
        """Returns data at the place of a part of the stream; None without any."""
        node = self.reading.get(part)
        return tree if tree is None or node is None else to_node(tree, node)

    def _add(self, section: str, part: str, node: Tree, at: Node | None) -> str:
        """Adds a node at the place of a part of the stream, and returns its name."""
        name = self._name(part)
        place = at if at is not None else self.reading.node
        self._sections[section][name] = to_node(node, place)
        return name

    def _inputs(self, mentions: bool) -> list[InputPlan]:
        found = read_component(
            self.reading.get("input"), "input", _INPUTS, self.findings, self.reading.node
        )
        if found is None:
            return []
        type_, reading = found
        if type_ != "multiple_inputs":
            plan = self._input(type_, reading, mentions)
            return [plan]
        plans = [plan for plan in self._children(reading, mentions) if plan is not None]
        names = [plan.name for plan in plans]
        for name in {name for name in names if names.count(name) > 1}:
            self.findings.error(
                f'two inputs have the name "{name}"', reading.where("inputs"),
                code="duplicate-name",
            )  # fmt: skip
        return plans

    def _children(self, reading: Reading, mentions: bool) -> Iterator[InputPlan | None]:
        node = reading.get("inputs")
        for item in node.items if isinstance(node, SequenceNode) else ():
            child = read_component(item, "input", _INPUTS, self.findings, reading.node)
            if child is None:
                continue
            type_, inner = child
            if type_ == "multiple_inputs":
                inner.reject("type", "an input of several inputs is not several inputs itself")
                continue
            if not inner.text("name"):
                self.findings.error(
                    f'{inner.subject} of several inputs requires "name"', inner.node.location,
                    code="missing-option",
                )  # fmt: skip
                continue
            yield self._input(type_, inner, mentions)

    def _input(self, type_: str, reading: Reading, mentions: bool) -> InputPlan:
        kind = "file" if type_ in FORMATS else type_
        plan = inputs.READERS[kind](reading)
        plan.name = reading.text("name")
        codec = reading.get("codec")
        is_rows = plan.columns != (VALUE,) and "payload" not in plan.rows
        if codec is not None and is_rows:
            self.findings.warn(
                f'"codec" of {reading.subject} has no effect: its rows are columns already',
                reading.where("codec"),
            )
        elif codec is not None:
            plan.rows["decode"] = read_codec(codec, reading.subject, self.findings)
        if not is_rows:
            metadata, columns = metadata_of(kind, mentions)
            if metadata:
                plan.rows["metadata"] = metadata
            if columns:
                plan.source["metadata"] = [*columns]
                plan.columns = (*plan.columns, *columns)
        return plan

    def _sample(self, plans: Sequence[InputPlan]) -> None:
        """Adds samples of the inputs, whose columns are written. An input without end has none."""
        for plan in plans:
            if not plan.is_bounded and "payload" not in plan.rows:
                self.findings.error(
                    "the columns of the output are not known", self.reading.where("output"),
                    code="missing-schema",
                    hint="end the pipeline with a sql processor that names each column, without *",
                )  # fmt: skip
            elif plan.source.get("type") == "memory" and "payloads" in plan.source:
                plan.rows["sample"] = plan.source["payloads"]

    def _sources(self, plans: Sequence[InputPlan]) -> str:
        """Adds the sources, and returns the name of the node with the rows of all."""
        at = self.reading.get("input")
        if len(plans) == 1:
            return self._add("sources", "input", plans[0].source, at)
        named = {
            self._add("sources", f"input_{plan.name}", plan.source, at): plan for plan in plans
        }
        for plan in plans:
            if plan.types:
                plan.rows["columns"] = [*plan.columns]
        query = {"type": "sql", "sql": select_inputs(named)}
        return self._add("transforms", "inputs", query, at)

    def _steps(self, pipeline: Reading | None) -> tuple[list[Tree], list[str] | None, float | None]:
        """Returns the steps, the columns after them if known, and the time of a batch."""
        steps: list[Tree] = []
        queries: list[tuple[str, str]] = []
        seconds: float | None = None
        temporaries = self._temporaries()
        node = pipeline.get("processors") if pipeline is not None else None
        if node is not None and not isinstance(node, SequenceNode):
            self.findings.error("processors expects a list", node.location, code="wrong-type")
        for item in node.items if isinstance(node, SequenceNode) else ():
            found = read_component(
                item, "processor", processors.PROCESSORS, self.findings, self.reading.node
            )
            if found is None:
                continue
            type_, reading = found
            steps.append(to_node(processors.READERS[type_](reading, temporaries), item))
            query = reading.get("query")
            queries.append((type_, query.written if isinstance(query, ScalarNode) else ""))
            if type_ == "batch":
                timeout = reading.value("timeout_ms")
                seconds = (
                    timeout / 1000 if isinstance(timeout, int) else reading.seconds("interval")
                )
        return steps, processors.last_columns(queries), seconds

    def _temporaries(self) -> processors.Temporaries:
        found: processors.Temporaries = {}
        node = self.reading.get("temporary")
        for item in node.items if isinstance(node, SequenceNode) else ():
            component = read_component(
                item, "temporary", processors.TEMPORARIES, self.findings, self.reading.node
            )
            if component is not None:
                found[component[1].text("name")] = processors.read_temporary(component[1])
        return found

    def _buffer(self) -> BufferPlan | None:
        if self.reading.get("buffer") is None:
            return None
        found = read_component(
            self.reading.get("buffer"), "buffer", BUFFERS, self.findings, self.reading.node
        )
        if found is None:
            return None
        type_, reading = found
        return read_buffer(reading, type_)

    def _output(self, name: str, columns: Sequence[str] | None) -> OutputPlan | None:
        node = self.reading.get(name)
        if node is None and name == "error_output":
            return None
        kind = "output" if name == "output" else "error output"
        found = read_component(node, kind, outputs.OUTPUTS, self.findings, self.reading.node)
        if found is None:
            return None
        type_, reading = found
        if name == "error_output" and type_ in {"sql", "mongodb", "influxdb"}:
            reading.reject("type", "a message that fails is a payload, and has no columns")
            return None
        plan = outputs.READERS[type_](reading, columns)
        if plan.is_payload:
            plan.encode = read_codec(reading.get("codec"), reading.subject, self.findings)
        elif reading.get("codec") is not None and type_ == "sql":
            reading.reject("codec", "rows of a table have no payload")
        return plan

    def _sinks(self, output: OutputPlan, errors: OutputPlan | None, batch: dict[str, Tree]) -> None:
        results = self._name("pipeline")
        if errors is not None:
            results = self._branch("results", output, errors, "NOT __failed__", "output")
        self._add_sink("output", output, results, batch)
        if errors is not None:
            failures = self._branch("failures", errors, None, "__failed__", "error_output")
            self._add_sink("error_output", errors, failures, batch)

    def _branch(
        self, part: str, plan: OutputPlan, others: OutputPlan | None, condition: str, at: str
    ) -> str:
        """Adds the rows of an output among those of the pipeline."""
        prefix = "" if others is not None else "error_"
        columns = [f"{quote_name(prefix + name)} AS {quote_name(name)}" for name in plan.columns]
        if plan.is_payload:
            selected = ", ".join(["__payload__", *columns])
        else:
            unread = ["__payload__", "__failed__"]
            unread += [f"error_{name}" for name in (others.columns if others else {})]
            selected = f"* EXCEPT ({', '.join(unread)})"
        query = f"SELECT {selected} FROM {quote_name(self._name('pipeline'))} WHERE {condition}"
        return self._add("transforms", part, {"type": "sql", "sql": query}, self.reading.get(at))

    def _add_sink(self, part: str, plan: OutputPlan, source: str, batch: dict[str, Tree]) -> None:
        sink = {**plan.sink, "from": source}
        if batch:
            known = sink.get("batch")
            sink["batch"] = {**(known if isinstance(known, dict) else {}), **batch}
        self._add("sinks", part, sink, self.reading.get(part))

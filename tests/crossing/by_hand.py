"""Pipelines of a source or a sink, carried out without Spark by the tasks of the engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from crossing.systems import System, all_rows
from crossing.wide_rows import declaration, differences, exact, wide_rows
from penstock import app
from penstock.core.errors import PlanError
from penstock.engine.catalyst.columns import exchange_schema
from penstock.engine.sinks.sink import SinkTask
from penstock.engine.sinks.sink import write as write_partition
from penstock.engine.sources.source import SourceTask
from penstock.engine.sources.source_tasks import source_rows, typed_source
from penstock.engine.tasks.dead_letter_writer import Spool, Stage
from penstock.plan.node import Node
from penstock.runtime.dead_letters.store import read_file
from penstock.sdk import BatchId, ReplayableSource

Options = dict[str, Any]
Letters = Mapping[str, str]
"""The messages of dead letters by the ID of the row."""


def check(system: System, directory: Path) -> list[str]:
    """Writes all rows to a system and reads them. Returns the differences from its tables."""
    rows = wide_rows()
    taken = [id_.as_py() not in system.without for id_ in rows.column("id")]
    columns = [name for name in rows.schema.names if name not in system.dropped]
    rows = rows.filter(pa.array(taken)).select(columns)
    rejected = write(directory, system.sink("wide"), rows)
    system.settle("wide")
    if system.stored is not None:
        found, bad = system.stored("wide"), dict[str, str]()
    else:
        assert system.source is not None
        found, bad = read(directory, {**system.source("wide"), "schema": declaration(columns)})
    return [
        *differences(system.holds(all_rows()), exact(found)),
        *compare_letters(system.rejects(all_rows()), rejected),
        *(f"{id_}: {message}" for id_, message in bad.items()),
        *_not_rejected(system, directory),
    ]


def _not_rejected(system: System, directory: Path) -> list[str]:
    """Returns the columns of the table that the sink accepts, or rejects without their name."""
    lines, sink = [], _sink_node(directory, system.sink("rejected")).sink
    for column in sorted(system.columns):
        try:
            sink.check_schema(wide_rows().schema.empty_table().select(["id", column]).schema)
            lines.append(f"{column}: not rejected")
        except PlanError as error:
            if f'"{column}"' not in error.message:
                lines.append(f"{column}: rejected without its name: {error.message}")
    return lines


def compare_letters(expected: Letters, letters: Letters) -> list[str]:
    """Returns the dead letters that are missing, unexpected, or have another message."""
    lines = [f"{id_}: no dead letter" for id_ in expected.keys() - letters.keys()]
    for id_, message in letters.items():
        part = expected.get(id_)
        if part is None:
            lines.append(f"{id_}: unexpected dead letter: {message}")
        elif part not in message:
            lines.append(f"{id_}: expected {part} in the dead letter, found {message}")
    return sorted(lines)


def decode(
    directory: Path, options: Options, payloads: list[bytes]
) -> tuple[pa.RecordBatch, Letters]:
    """Decodes messages as a source does. Returns the rows and the errors by position."""
    given = {"out": {"type": "blackhole", "from": "in"}}
    source = plan_node(directory, sources={"in": options}, sinks=given, name="in").source
    assert source.format is not None and source.columns is not None
    decoded = source.format.decode(pa.array(payloads, pa.binary()), source.columns)
    return decoded.rows, {str(each.index): each.error.message for each in decoded.failures}


def plan_node(directory: Path, *, sources: Options, sinks: Options, name: str) -> Node:
    """Returns a node of the plan of a pipeline."""
    directory.mkdir(exist_ok=True)
    path = directory / f"{name}.yaml"
    path.write_text(json.dumps({"name": name, "sources": sources, "sinks": sinks}))
    nodes = app.plan(path).nodes
    return next(node for node in nodes.values() if node.written_name == name)


def _sink_node(directory: Path, options: Options) -> Node:
    given = {"in": {"type": "memory", "rows": [{"id": "x"}]}}
    return plan_node(directory, sources=given, sinks={"out": {**options, "from": "in"}}, name="out")


def write(directory: Path, options: Options, rows: pa.RecordBatch, number: int = 0) -> Letters:
    """Writes a batch of a number to a sink. Returns the dead letters."""
    sink, spool = _sink_node(directory, options).sink, _spool(directory, "sink")
    sink.check_schema(rows.schema)
    sink.check()
    sink.prepare(rows.schema)
    sink.recover()
    task, batch = SinkTask.of(sink, spool), BatchId("q", number)
    receipt = write_partition(task, batch, 0, iter([rows]))
    task.discard_client()
    assert receipt is not None
    sink.commit(batch, [receipt])
    sink.complete()
    return _letters(spool)


def read(directory: Path, options: Options) -> tuple[pa.Table, Letters]:
    """Returns all rows of a source, and the dead letters."""
    given = {"out": {"type": "blackhole", "from": "in"}}
    node = plan_node(directory, sources={"in": options}, sinks=given, name="in")
    source = node.source
    assert isinstance(source, ReplayableSource)
    if source.columns is None:
        source.columns = source.infer_schema()
    columns = source_rows(node)
    spool, typed = _spool(directory, "decode"), typed_source(source, columns)
    task = SourceTask(typed, columns, {}, spool)
    with closing(source), closing(typed):
        start = source.initial_offset()
        end = source.latest_offset(start)
        parts = []
        for number, partition in enumerate(source.partitions(start, end)):
            with closing(spool.begin(0, number)) as letters:
                parts += [*task.read(partition, letters)]
    return pa.Table.from_batches(parts, schema=exchange_schema(columns)), _letters(spool)


def _spool(directory: Path, stage: Stage) -> Spool:
    return Spool("p", "q", stage, stage, directory=str(directory / stage))


def _letters(spool: Spool) -> Letters:
    assert spool.directory is not None
    return {
        _id(letter["payload"]): letter["message"]
        for path in Path(spool.directory).rglob("*.arrow")
        for letter in read_file(path).to_pylist()
    }


def _id(payload: bytes) -> str:
    return str(json.loads(payload)["id"])

"""Places of failing rows: found after a batch, in the source that the batch has read.

The rows of a batch carry no places, which would cost time for each row. If SQL fails on rows, the
batch is read again with places. Equal rows fail equally, so the first one of equal failing rows has
the first place with their content, and so on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from penstock.engine.build import Builder
from penstock.engine.catalyst.arrow_map import map_in_arrow
from penstock.engine.catalyst.columns import sink_schema, to_spark
from penstock.engine.catalyst.variants import mark_variants, variants_to_json
from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.engine.checkpoints.start_offsets import StartOffsets
from penstock.engine.failures.carried_places import carry
from penstock.engine.failures.dead_letter_files import Place, read_batch, write_places
from penstock.engine.failures.placed_rows import (
    MATCH,
    NUMBER,
    PLACE,
    Contents,
    Matching,
    PlacedRows,
    content_of,
    digest,
    knows_places,
    parse,
)
from penstock.engine.late.late_rows import CODE as LATE
from penstock.engine.sources.source import SourceTask
from penstock.engine.sources.source_readers import source_offset
from penstock.plan.model import Query
from penstock.plan.node import Node

MAX_ROWS = 10_000
"""The number of failing rows of a node in a batch whose places are found."""
_DeadLetter = Mapping[str, Any]


@dataclass(frozen=True)
class FailingRowPlaces:
    """The places of the rows of a query on which SQL fails.

    `tasks` are the packed tasks of its sources, by node.
    """

    builder: Builder
    query: Query
    checkpoint: Path
    tasks: Mapping[str, str]

    def find(self, session: SparkSession, number: int) -> None:
        """Stores the places of the failing rows of a batch beside its dead letters.

        Rows that are not found again have no place. Raises an exception if the source cannot be
        read again.
        """
        if self.builder.spool is None:
            return
        folder = self.builder.spool / self.query.name / str(number)
        places: dict[str, Place] = {}
        for path, dead_letters in self._by_path(folder).items():
            source, *above = (self.builder.plan.nodes[name] for name in path)
            rows = self._read_again(source, session, number)
            for node in above:
                if rows is not None:
                    rows = carry(self.builder, self.query, node, rows)
            if rows is not None:
                places |= _match(rows, dead_letters)
        if places:
            write_places(folder, places)

    def _by_path(self, folder: Path) -> dict[tuple[str, ...], list[list[_DeadLetter]]]:
        """Returns the letters of each node, by the nodes that have computed its input."""
        grouped: dict[tuple[str, ...], list[list[_DeadLetter]]] = defaultdict(list)
        if next(folder.rglob("[!.]*.arrow"), None) is None:
            return grouped
        dead_letters = read_batch(folder)
        for name in pc.unique(dead_letters["node"]).to_pylist():
            node = self.builder.plan.nodes[name]
            path = self._path(node)
            failing = dead_letters.filter(_fails_in_sql(node, dead_letters)).slice(0, MAX_ROWS)
            if path is not None and failing.num_rows:
                grouped[path].append(failing.to_pylist())
        return grouped

    def _path(self, node: Node) -> tuple[str, ...] | None:
        """Returns the nodes from the source to the input of a node, which is SQL of one stream.

        Returns None for other nodes, and below nodes that keep state or call functions. A source
        that computes event times is in the path twice: its rows are the input of the computation.
        """
        if node.kind == "source":
            return (node.name,) if node.name in self.tasks else None
        inputs = [name for name in node.inputs if name in self.builder.plan.streams]
        if node.frame_transform is None or len(inputs) != 1:
            return None
        above = self.builder.plan.nodes[inputs[0]]
        path = self._path(above)
        if path is None or (above.kind == "source" and not above.computes_event_time):
            return path
        return None if above.stateful or above.updating else (*path, above.name)

    def _read_again(self, node: Node, session: SparkSession, number: int) -> DataFrame | None:
        """Returns the rows of a source in a batch with their places, or None if it has none."""
        task, offsets = SourceTask.unpack(self.tasks[node.name]), self._offsets(node, number)
        if offsets is None or not knows_places(task):
            return None
        try:
            start, end = map(source_offset, offsets)
            partitions = task.source.partitions(start, end)
        finally:
            task.source.close()
        if not partitions:
            return None
        read = PlacedRows(task, partitions)
        numbers = session.range(0, len(partitions), 1, len(partitions))
        frame = numbers.mapInArrow(read, to_spark(read.schema()))
        return mark_variants(frame, read.schema())

    def _offsets(
        self, node: Node, number: int
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        """Returns the offsets between which a batch reads a source, or None if unknown."""
        log = OffsetLog(self.checkpoint)
        before = log.end_offsets(number - 1) if number else {}
        start = before.get(node.name) or StartOffsets(self.checkpoint).read().get(node.name)
        end = log.end_offsets(number).get(node.name)
        return None if start is None or end is None else (start, end)


def _fails_in_sql(node: Node, dead_letters: pa.Table) -> pa.ChunkedArray:
    """Returns whether each letter holds an input row of a node on which SQL of the node fails."""
    stage = "output" if node.kind == "source" else "transform"
    equal = pc.and_(
        pc.equal(dead_letters["node"], node.name), pc.equal(dead_letters["stage"], stage)
    )
    on_time = pc.not_equal(dead_letters["code"], LATE)
    return pc.and_(pc.and_(equal, on_time), pc.is_null(dead_letters["origin"]))


def _match(rows: DataFrame, nodes: Sequence[Sequence[_DeadLetter]]) -> dict[str, Place]:
    """Returns the places of letters by ID. `rows` are the input of their nodes, with places."""
    columns = sink_schema(rows.drop(PLACE).schema)
    parsed = [list(_with_columns(dead_letters, columns)) for dead_letters in nodes]
    contents = Contents.of([[row for _, row in dead_letters] for dead_letters in parsed], columns)
    matching = Matching(columns, contents)
    found = map_in_arrow(variants_to_json(rows), matching, to_spark(MATCH)).toArrow()
    places: dict[bytes, list[Place]] = defaultdict(list)
    for match in found.sort_by(NUMBER).to_pylist():
        places[match["content"]].append(Place(match["origin"], match["position"]))
    result = {}
    for dead_letters in parsed:
        remaining = {content: iter(each) for content, each in places.items()}
        for identity, row in dead_letters:
            content = digest(content_of(row, columns))
            place = next(remaining.get(content, iter(())), None)
            if place is not None:
                result[identity] = place
    return result


def _with_columns(
    dead_letters: Sequence[_DeadLetter], columns: pa.Schema
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the IDs and the rows of letters that have all columns."""
    for letter in dead_letters:
        row = parse(letter["payload"])
        if row.keys() >= set(columns.names):
            yield letter["id"], row

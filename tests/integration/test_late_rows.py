"""Late rows: counted row by row, and dead letters on request."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock import app
from penstock.cli.metrics_table import format_counts
from penstock.connectors import memory
from penstock.control import PipelineControl
from penstock.core.errors import Permanent, PlanError
from penstock.engine.late.late_rows import LateRows
from penstock.runtime.dead_letters.store import DeadLetters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DAY = "2026-01-01T"
SOURCE = """\
  {name}:
    type: files
    path: "{name}-*.jsonl"
    format: json
    max_files: {files}
    schema: id LONG, k STRING, at TIMESTAMP, note STRING
    watermark: {{column: at, delay: {delay}}}
    late: dead_letter
"""
Batch = Sequence[tuple[int, str, str | None]]
"""Rows of a batch: ID, key and time of day."""


def source(name: str = "s", delay: str = "0s", files: int = 1) -> str:
    return SOURCE.format(name=name, delay=delay, files=files)


def write(directory: Path, name: str, batches: Sequence[Batch], parts: int = 1) -> None:
    """Writes each batch as `parts` files, whose names sort in the order of the batches."""
    for number, batch in enumerate(batches):
        for part in range(parts):
            rows = [
                {"id": id_, "k": key, "at": time and f"{DAY}{time}Z", "note": f"n{id_}"}
                for id_, key, time in batch[part::parts]
            ]
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (directory / f"{name}-{number:03}-{part}.jsonl").write_text(lines)


class Ran:
    """A finished run: its metrics and its dead letters."""

    def __init__(
        self, directory: Path, spark: SparkSession, text: str, until: Any = "caught_up"
    ) -> None:
        (directory / "p.yaml").write_text(text)
        options = app.RunOptions(until=until)
        handle = app.start(directory / "p.yaml", spark=spark.newSession(), options=options)
        outcome = handle.wait(120)
        assert outcome is not None and outcome.errors == {}, outcome
        self.numbers = handle.metrics.snapshot()
        self.by_spark = {name: late.by_spark for name, late in handle.metrics.late.items()}
        dead_letters = DeadLetters(handle.plan.state / "dead_letters").read().to_pylist()
        self.dead_letters = [letter for letter in dead_letters if letter["code"] == "late"]

    @property
    def ids(self) -> list[int]:
        """The IDs of the rows of dead letters."""
        return self.ids_of()

    def ids_of(self, query: str | None = None, node: str | None = None) -> list[int]:
        """The IDs of the rows of dead letters of a query and of a source."""
        return sorted(
            json.loads(letter["payload"])["id"]
            for letter in self.dead_letters
            if query in (None, letter["query"]) and node in (None, letter["node"])
        )


def pipeline(sources: str, transforms: str, sink: str = "w") -> str:
    return (
        f"runtime: {{partitions: 2}}\nsources:\n{sources}transforms:\n{transforms}"
        f"sinks:\n  out: {{type: memory, from: {sink}, name: late_out}}\n"
    )


def window(query: str, name: str = "w") -> str:
    return f'  {name}: {{type: sql, sql: "{query}"}}\n'


def sinks(names: Iterable[str]) -> str:
    return "".join(f"  {n}_out: {{type: memory, from: {n}, name: late_{n}}}\n" for n in names)


TUMBLING = window(
    "SELECT k, window.start AS at, count(*) AS n FROM s GROUP BY k, window(at, '1 hour')"
)
HOURS = [
    [(1, "a", "10:05:00"), (2, "a", "10:30:00"), (3, "a", None)],
    [(4, "a", "12:00:00")],
    # The watermark of the batch before is 10:30: no window has ended.
    [(5, "a", "10:00:00"), (6, "b", "10:59:59"), (7, "a", "12:10:00")],
    # Now it is 12:00: the windows up to 12:00 have ended.
    [(8, "a", "10:00:00"), (9, "a", "10:00:00"), (10, "b", "11:59:59"), (11, "a", "12:00:00"),
     (12, "a", "11:00:00"), (13, "b", "10:59:59"), (14, "a", "12:59:59")],
]  # fmt: skip


SHAPES: dict[str, tuple[str, list[int], int]] = {
    "filter": ("SELECT window.start AS t, count(*) AS n FROM s WHERE id % 2 = 0 AND k = 'a' "
               "GROUP BY window(at, '1 hour', '1 hour', '30 minutes')", [8, 12], 2),
    # Rows of 12:00 are in the window of 11:00, which is open; its row in the one of 10:00 is late.
    "sliding": ("WITH c AS (SELECT upper(k) AS u, at AS t FROM s) SELECT window.end AS t, u, "
                "count(*) AS n FROM (SELECT * FROM c WHERE u <> 'B') "
                "GROUP BY window(t, '2 hours', '1 hour'), u", [8, 9], 3),
    "session": ("SELECT session_window.start AS t, k, count(*) AS n FROM s "
                "GROUP BY k, session_window(at, '30 minutes')", [5, 8, 9, 12, 13], 5),
    "distinct": ("SELECT DISTINCT at, k FROM s", [5, 8, 9, 10, 11, 12, 13], 7),
    "exploded": ("SELECT window.start AS t, c, count(*) AS n FROM "
                 "(SELECT at, explode(array('x', k, 'y')) AS c FROM s WHERE id < 13) "
                 "GROUP BY window(at, '1 hour'), c", [8, 9, 10, 12], 4),
    "two windows": ("SELECT window.start AS t, sum(n) AS n FROM (SELECT window AS w, count(*) AS n "
                    "FROM s GROUP BY window(at, '1 hour')) GROUP BY window(w, '1 day')",
                    [8, 9, 10, 12, 13], 5),
}  # fmt: skip


SHARES = '  c: {type: sql, sql: "SELECT at, 10 / (id - 9) AS v FROM s"}\n' + window(
    "SELECT window.start AS t, sum(v) AS n FROM c GROUP BY window(at, '1 hour')", "shares"
)
NAMES = "  names: {type: memory, static: true, rows: [{k: a, name: x}, {k: a, name: y}]}\n"
NAMED = (
    '  j: {type: sql, sql: "SELECT s.*, names.name FROM s JOIN names USING (k) WHERE id <> 9"}\n'
    + window(
        "SELECT window.start AS t, count(*) AS n FROM j GROUP BY window(at, '1 hour')", "named"
    )
)


def test_each_query_has_its_own_late_rows(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """Each late row counts, also rows of one group and partition.

    A window that ends at the watermark has ended. A row that two queries drop counts in both, and
    is a dead letter of each. A row on which SQL fails, in `shares`, is no late row. A row that the
    join `named` multiplies is one late row, and a row without a match is none.
    """
    write(tmp_path, "s", HOURS, parts=3)
    names = {shape.replace(" ", "_"): shape for shape in SHAPES}
    transforms = "".join(window(SHAPES[shape][0], name) for name, shape in names.items())
    text = pipeline(source(files=3) + NAMES, TUMBLING + transforms + SHARES + NAMED)
    updated = (
        "  updated: {type: memory, from: w, name: updated, mode: upsert, primary_key: [k, at]}\n"
    )
    ran = Ran(tmp_path, penstock_spark, text + sinks([*names, "shares", "named"]) + updated)
    expected = {n: SHAPES[shape][1:] for n, shape in names.items()}
    expected |= {"w": ([8, 9, 10, 12, 13], 5), "w_updates": ([8, 9, 10, 12, 13], 5)}
    expected |= {"shares": ([8, 10, 12, 13], 4), "named": ([8, 12], 2)}
    queries = ran.numbers["queries"]
    assert {n: (ran.ids_of(n), query["late_rows"]) for n, query in queries.items()} == expected
    assert ran.numbers["late_rows_exact"]
    total = sum(count for _, count in expected.values())
    assert ran.numbers["nodes"]["s"]["late_rows"] == ran.numbers["late_rows"] == total
    assert ran.numbers["dead_letters"] == sum(len(ids) for ids, _ in expected.values()) + 1
    assert queries["w"]["late_rows_by_node"] == {"s": 5}
    counted = sum(row["n"] for row in memory.tables["late_out"].to_pylist())
    in_open_window = 4
    assert counted + in_open_window + 5 + 1 == sum(map(len, HOURS))
    first = min(
        (letter for letter in ran.dead_letters if letter["query"] == "w"),
        key=lambda letter: json.loads(letter["payload"])["id"],
    )
    assert (first["node"], first["stage"]) == ("s", "output")
    assert json.loads(first["payload"])["note"] == "n8"
    assert first["message"] == (
        "event time 2026-01-01T10:00:00Z is 2 hours before the watermark 2026-01-01T12:00:00Z"
    )


FILTERED = [
    [(1, "a", "10:05:00")],
    [(2, "b", "12:00:00")],
    [(3, "a", "10:06:00")],
    [(4, "a", "10:07:00")],
]


def test_rows_that_a_filter_drops_advance_the_watermark(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    """The source drops the rows of the first filter, Spark those of the second one."""
    memory.clear()
    write(tmp_path, "s", FILTERED)
    hours = "SELECT window.start AS t, count(*) AS n FROM s WHERE {} GROUP BY window(at, '1 hour')"
    transforms = window(hours.format("k = 'a'"))
    transforms += window(hours.format("upper(k) = 'A'")).replace("w:", "v:")
    sink = "  v_out: {type: memory, from: v, name: late_v}\n"
    ran = Ran(tmp_path, penstock_spark, pipeline(source(), transforms) + sink)
    assert ran.ids == [4, 4]
    for name in ("late_out", "late_v"):
        assert [row["n"] for row in memory.tables[name].to_pylist()] == [2]


def random_batches(seed: int, batches: int, rows: int) -> list[Batch]:
    """Returns batches of rows within about two hours of a time that advances."""
    draw = random.Random(seed)
    return [
        [
            (number * rows + index, draw.choice("ab"), f"{minute // 60:02}:{minute % 60:02}:00")
            for index in range(rows)
            for minute in [max(1, number * 15 + draw.randint(-130, 0) + 140)]
        ]
        for number in range(batches)
    ]


def minutes(time: str) -> int:
    return int(time[:2]) * 60 + int(time[3:5])


def watermarks(inputs: Sequence[Sequence[Batch]], delays: Sequence[int]) -> list[int]:
    """Returns for each batch the watermark of the batch before, as the minimum of all sources."""
    latest = [-1] * len(inputs)
    found = [-1, -1]
    for number in range(len(inputs[0])):
        for index, batches in enumerate(inputs):
            times = [minutes(time) for _, _, time in batches[number] if time]
            latest[index] = max([latest[index], *(time - delays[index] for time in times)])
        found.append(max(found[-1], min(latest)))
    return found


COMPUTED = {
    "windows": "SELECT k, window.start AS at, count(*) AS n FROM s "
    "GROUP BY k, window(at, '10 minutes')",
    "pairs": "SELECT s.id FROM s JOIN u ON s.k = u.k "
    "AND u.at BETWEEN s.at AND s.at + INTERVAL 9 MINUTES",
    "both": "SELECT window.start AS t, count(*) AS n FROM (SELECT at, id FROM s UNION ALL "
    "SELECT at, id FROM u) GROUP BY window(at, '1 minute')",
}
DEDUPE = "  once: {type: dedupe, from: s, keys: [id]}\n"


def test_late_rows_of_random_rows_equal_a_computation(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    """By the rule: a window is over when the watermark, of two sources the lower one, has its end.

    Spark counts the late rows of a deduplication and of a join itself.
    """
    inputs = {"s": random_batches(7, 4, 60), "u": random_batches(2, 4, 30)}
    delays = {"s": 20, "u": 30}
    for name, batches in inputs.items():
        write(tmp_path, name, batches, parts=2)
    sources = "".join(source(name, f"{delay} minutes", 2) for name, delay in delays.items())
    transforms = DEDUPE + "".join(window(sql, name) for name, sql in COMPUTED.items())
    text = pipeline(sources, transforms, "once") + sinks(COMPUTED)
    ran = Ran(tmp_path, penstock_spark, text, until="auto")

    of_s, of_both = watermarks([inputs["s"]], [20]), watermarks([*inputs.values()], [20, 30])
    rules: dict[str, tuple[list[int], Callable[[int], int], tuple[str, ...]]] = {
        "once": (of_s, lambda time: time, ("s",)),
        "windows": (of_s, lambda time: (time // 10 + 1) * 10, ("s",)),
        "pairs": (of_both, lambda time: time, ("s", "u")),
        "both": (of_both, lambda time: time + 1, ("s", "u")),
    }
    for query, (marks, end, nodes) in rules.items():
        counts = ran.numbers["queries"][query]["late_rows_by_node"]
        for node in nodes:
            late = sorted(
                id_ for number, rows in enumerate(inputs[node]) for id_, _, time in rows
                if time and end(minutes(time)) <= marks[number]
            )  # fmt: skip
            assert late and ran.ids_of(query, node) == late, (query, node)
            assert counts[node] == len(late), (query, node)
    assert ran.numbers["queries"]["windows"]["late_rows"] > 50
    for query in ("once", "pairs"):
        assert ran.by_spark[query] == ran.numbers["queries"][query]["late_rows"]


def test_a_repeated_batch_has_the_same_late_rows_once(
    tmp_path: Path, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends after the sink and the dead letters of the batch, before Spark's commit."""
    write(tmp_path, "s", HOURS, parts=2)
    report = LateRows.report

    def interrupted(self: LateRows, batch: int) -> None:
        report(self, batch)
        if batch == 3:
            raise Permanent("interrupted")

    text = pipeline(source(files=2), TUMBLING)
    with monkeypatch.context() as patch:
        patch.setattr(LateRows, "report", interrupted)
        (tmp_path / "p.yaml").write_text(text)
        options = app.RunOptions(until="caught_up")
        file, session = tmp_path / "p.yaml", penstock_spark.newSession()
        outcome = app.start(file, spark=session, options=options).wait(60)
        assert outcome is not None and outcome.errors
    ran = Ran(tmp_path, penstock_spark, text)
    assert ran.ids == [8, 9, 10, 12, 13]
    assert ran.numbers["late_rows"] == 5


def test_replay_sends_late_rows_only_to_the_query_that_dropped_them(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    write(tmp_path, "s", HOURS)
    text = pipeline(source(), TUMBLING) + "  all: {type: memory, from: s, name: late_all}\n"
    memory.tables.pop("late_out", None)
    memory.tables.pop("late_all", None)
    Ran(tmp_path, penstock_spark, text)
    plan = app.plan(tmp_path / "p.yaml")
    before = memory.tables["late_out"].num_rows
    replay = PipelineControl.of(plan).replay(spark=penstock_spark.newSession())
    assert (replay.replayed, [node.count for node in replay.skipped]) == (0, [5])
    assert (
        PipelineControl.of(plan).replay(force=True, spark=penstock_spark.newSession()).replayed == 5
    )
    rows = memory.tables["late_out"].to_pylist()[before:]
    assert sorted((row["k"], row["at"].hour, row["n"]) for row in rows) == [
        ("a", 10, 2), ("a", 11, 1), ("b", 10, 1), ("b", 11, 1),
    ]  # fmt: skip
    assert memory.tables["late_all"].num_rows == sum(map(len, HOURS))
    assert DeadLetters(plan.state / "dead_letters").count() == 0


TRANSFORM = """\
  p:
    type: sql
    sql: SELECT id, k, to_timestamp(note) AS at FROM s
    watermark: {column: at}
    late: dead_letter
"""


def test_late_rows_of_a_computed_event_time(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """The dead letters hold the computed rows, and can be replayed."""
    for number, batch in enumerate(HOURS):
        rows = [{"id": id_, "k": key, "note": time and f"{DAY}{time}Z"} for id_, key, time in batch]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"s-{number}.jsonl").write_text(text)
    raw = "\n".join(source().splitlines()[:-2]).replace("at TIMESTAMP, ", "") + "\n"
    query = "SELECT k, window.start AS at, count(*) AS n FROM p GROUP BY k, window(at, '1 hour')"
    ran = Ran(tmp_path, penstock_spark, pipeline(raw, TRANSFORM + window(query)))
    assert ran.ids == [8, 9, 10, 12, 13]
    assert ran.numbers["queries"]["w"]["late_rows_by_node"] == {"p": 5}
    assert {(letter["node"], letter["stage"]) for letter in ran.dead_letters} == {("p", "output")}
    plan = app.plan(tmp_path / "p.yaml")
    result = PipelineControl.of(plan).replay(force=True, spark=penstock_spark.newSession())
    assert (result.replayed, result.failed) == (5, 0)


def test_late_rows_that_only_spark_can_count(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """A random value would be another one in a repetition."""
    write(tmp_path, "s", HOURS)
    query = (
        "SELECT window.start AS t, count(*) AS n FROM s WHERE length(uuid()) = 36 "
        "GROUP BY window(at, '1 hour')"
    )
    (tmp_path / "p.yaml").write_text(pipeline(source(), window(query)))
    with pytest.raises(PlanError, match="cannot be found one by one: an expression is not det"):
        app.start(tmp_path / "p.yaml", spark=penstock_spark.newSession()).wait(60)
    text = pipeline(source().replace("dead_letter", "drop"), window(query))
    ran = Ran(tmp_path, penstock_spark, text)
    assert not ran.dead_letters and not ran.numbers["queries"]["w"]["late_rows_exact"]
    # Two rows of 10:00, and two of 11:00, are one row after Spark's partial aggregation.
    assert ran.numbers["late_rows"] == 2
    assert "about 2 late rows" in format_counts(ran.numbers)

"""Connectors from plain PySpark: a data source that is found by its name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import penstock
from penstock.core.error_codec import decode

pytestmark = pytest.mark.spark

COLUMNS = "id LONG, at TIMESTAMP, name STRING"


@pytest.fixture
def spark(penstock_spark: SparkSession) -> Iterator[SparkSession]:
    """A session with Spark's own settings for streams, and nothing registered.

    It is the active session of this thread: Spark looks up data sources of a writer there, and a
    thread of another test, or a new connection to Java, has none.
    """
    session = penstock_spark.newSession()
    java: Any = session._jvm
    java.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
    session.conf.set("spark.sql.streaming.queryEvolution.enableSourceEvolution", "false")
    session.conf.set("spark.sql.streaming.offsetLog.formatVersion", "1")
    yield session
    for query in session.streams.active:
        query.stop()


def put(directory: Path, number: int, *rows: dict[str, Any] | str) -> None:
    """Makes a file of a test's input."""
    (directory / "in").mkdir(exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (directory / "in" / f"{number}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def row(number: int) -> dict[str, Any]:
    return {"id": number, "at": f"2024-01-01T00:00:{number:02}Z", "name": "☂"}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """The pattern of two files of five rows."""
    put(tmp_path, 1, row(1), row(2), row(3))
    put(tmp_path, 2, row(4), row(5))
    return tmp_path / "in" / "*.jsonl"


def files(reader: Any, path: Path, **options: Any) -> DataFrame:
    """What the source `files` reads at a path."""
    return reader.format("penstock").options(type="files", path=path, **options).load()


def ids(frame: DataFrame) -> list[int]:
    return sorted(found["id"] for found in frame.collect())


def written(directory: Path) -> list[int]:
    """The ids in the files of a sink."""
    found = sorted(directory.glob("[!.]*.jsonl"))
    return sorted(json.loads(line)["id"] for path in found for line in path.open())


def run_once(frame: DataFrame, checkpoint: Path, **options: Any) -> None:
    """Streams what is there now into the sink `files`."""
    stream = frame.writeStream.format("penstock").options(type="files", **options)
    start(stream.option("checkpointLocation", str(checkpoint))).awaitTermination(60)


def start(stream: Any) -> StreamingQuery:
    return stream.trigger(availableNow=True).start()


# Reading


def test_a_table(spark: SparkSession, rows: Path) -> None:
    frame = files(spark.read.schema(COLUMNS), rows)
    assert frame.schema.simpleString() == "struct<id:bigint,at:timestamp,name:string>"
    assert ids(frame) == [1, 2, 3, 4, 5]


def test_columns_are_inferred(spark: SparkSession, rows: Path) -> None:
    assert files(spark.read, rows).columns == ["id", "at", "name"]


def test_columns_as_an_option(spark: SparkSession, rows: Path) -> None:
    assert files(spark.read, rows, schema="name STRING, id INT").dtypes == [
        ("name", "string"),
        ("id", "int"),
    ]


def test_metadata(spark: SparkSession, rows: Path) -> None:
    found = files(spark.read, rows, schema="id LONG", metadata="name, position").collect()
    places = sorted((each["id"], each["name"], each["position"]) for each in found)
    assert places[2:4] == [(3, "1.jsonl", 3), (4, "2.jsonl", 1)]


def test_options_of_the_format(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text("id;name\n1;-\n")
    options = {"format": "csv", "format.delimiter": ";", "format.nulls": "-"}
    frame = files(spark.read.schema("id LONG, name STRING"), tmp_path / "some.csv", **options)
    assert [tuple(each) for each in frame.collect()] == [(1, None)]


def test_a_stream_goes_on_where_it_stopped(spark: SparkSession, rows: Path, tmp_path: Path) -> None:
    def run() -> None:
        frame = files(spark.readStream.schema(COLUMNS), rows, state=tmp_path / "seen", max_files=1)
        run_once(frame, tmp_path / "checkpoint", path=tmp_path / "out")

    run()
    assert written(tmp_path / "out") == [1, 2, 3, 4, 5]
    assert len(list((tmp_path / "checkpoint/commits").glob("[0-9]*"))) == 2, "one file to a batch"
    put(tmp_path, 3, row(6))
    run()
    assert written(tmp_path / "out") == [1, 2, 3, 4, 5, 6]


def test_a_bad_record_stops(spark: SparkSession, rows: Path, tmp_path: Path) -> None:
    put(tmp_path, 3, "{]")
    with pytest.raises(PySparkException) as failed:
        files(spark.read.schema(COLUMNS), rows).collect()
    error = decode(str(failed.value))
    assert error is not None
    assert error.code == "not-json"
    assert "3.jsonl" in error.message


def test_a_bad_record_is_dropped_on_demand(spark: SparkSession, rows: Path, tmp_path: Path) -> None:
    put(tmp_path, 3, "{]", row(6))
    frame = files(spark.read.schema(COLUMNS), rows, on_error="drop")
    assert ids(frame) == [1, 2, 3, 4, 5, 6]


# Writing


def test_writing_a_table(spark: SparkSession, tmp_path: Path) -> None:
    writer = spark.range(10).repartition(3).write.format("penstock").mode("append")
    writer.options(type="files", path=tmp_path / "out", format="parquet").save()
    assert len(list(tmp_path.glob("out/part-*"))) == 3
    table = pq.ParquetDataset(list(tmp_path.glob("out/part-*"))).read()
    assert sorted(table.column("id").to_pylist()) == list(range(10))
    assert not list(tmp_path.rglob("*.tmp"))


def test_writing_twice_adds(spark: SparkSession, tmp_path: Path) -> None:
    for first in (0, 3):
        writer = spark.range(first, first + 3).write.format("penstock").mode("append")
        writer.options(type="files", path=tmp_path / "out").save()
    assert written(tmp_path / "out") == [0, 1, 2, 3, 4, 5]


def test_a_failed_write_leaves_no_files(spark: SparkSession, tmp_path: Path) -> None:
    ids = "IF(id = 9, raise_error('nine'), id) AS id"
    frame = spark.range(0, 10, 1, numPartitions=2).selectExpr(ids)
    writer = frame.write.format("penstock").mode("append")
    with pytest.raises(PySparkException, match="nine"):
        writer.options(type="files", path=tmp_path / "out").save()
    assert not list(tmp_path.rglob("*.tmp"))
    assert written(tmp_path / "out") == []


def test_options_within_options_and_lists(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(4).selectExpr("id", "id % 2 AS odd", "'x' AS kind").coalesce(1)
    options = {"path": tmp_path / "out", "partition_by": "kind, odd", "roll.max_size": "1 MB"}
    frame.write.format("penstock").mode("append").options(type="files", **options).save()
    folders = {str(path.parent.relative_to(tmp_path / "out")) for path in tmp_path.rglob("part-*")}
    assert folders == {"kind=x/odd=0", "kind=x/odd=1"}


def test_a_replayed_batch_is_there_once(spark: SparkSession, rows: Path, tmp_path: Path) -> None:
    """Spark writes a batch again that was written, but is not in the commit log."""

    def run() -> None:
        frame = files(spark.readStream.schema(COLUMNS), rows, state=tmp_path / "seen", max_files=1)
        run_once(frame, tmp_path / "checkpoint", path=tmp_path / "out")

    run()
    (tmp_path / "checkpoint/commits/1").unlink()
    (tmp_path / "checkpoint/commits/.1.crc").unlink(missing_ok=True)
    put(tmp_path, 3, row(6))
    run()
    assert written(tmp_path / "out") == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("restored", [1, 2], ids=["same-number", "earlier-number"])
def test_checkpoint_older_than_the_sink(
    spark: SparkSession, rows: Path, tmp_path: Path, restored: int
) -> None:
    """Batches of a restored checkpoint have the numbers of other batches, which were written."""
    state, checkpoint = tmp_path / "seen", tmp_path / "checkpoint"

    def run() -> None:
        frame = files(spark.readStream.schema(COLUMNS), rows, state=state, max_files=1)
        run_once(frame, checkpoint, path=tmp_path / "out")

    run()
    for number in range(2 - restored, 2):
        for log in ("commits", "offsets"):
            (checkpoint / log / str(number)).unlink()
            (checkpoint / log / f".{number}.crc").unlink(missing_ok=True)
    lines = (state / "files.log").read_text().splitlines(keepends=True)
    (state / "files.log").write_text("".join(lines[: 2 - restored]))
    (tmp_path / "in/2.jsonl").unlink()
    put(tmp_path, 3, row(6))
    with pytest.raises(PySparkException) as failed:
        run()
    error = decode(str(failed.value))
    assert error is not None, str(failed.value)
    assert error.code == "state-older-than-sink"
    assert "the checkpoint in" in error.message and "new checkpoint" in (error.hint or "")
    assert written(tmp_path / "out") == [1, 2, 3, 4, 5]


def test_checkpoint_that_is_unknown_to_an_exactly_once_sink(
    spark: SparkSession, rows: Path, tmp_path: Path
) -> None:
    frame = files(spark.readStream.schema(COLUMNS), rows, state=tmp_path / "seen")
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path / "checkpoints"))
    try:
        stream = frame.writeStream.format("penstock").queryName("unknown_checkpoint")
        with pytest.raises(PySparkException) as failed:
            start(stream.options(type="files", path=tmp_path / "out")).awaitTermination(60)
        error = decode(str(failed.value))
        assert error is not None and error.code == "unknown-checkpoint", str(failed.value)
        stream = frame.writeStream.format("penstock").queryName("no_state")
        start(stream.options(type="blackhole")).awaitTermination(60)
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")


# ValidationErrors


def error_of(spark: SparkSession, rows: Path, **options: Any) -> Any:
    with pytest.raises(PySparkException) as failed:
        files(spark.read.schema(COLUMNS), rows, **options).collect()
    error = decode(str(failed.value))
    assert error is not None, str(failed.value)
    return error


def test_an_unknown_option(spark: SparkSession, rows: Path) -> None:
    error = error_of(spark, rows, max_file=1)
    assert error.message == 'source "files" has no option "max_file"'
    assert error.hint == 'did you mean "max_files"?'


def test_a_wrong_value(spark: SparkSession, rows: Path) -> None:
    error = error_of(spark, rows, max_files="few")
    assert error.message.startswith('source "files", option "max_files": ')
    assert "integer" in error.message


def test_an_unknown_option_of_the_format(spark: SparkSession, rows: Path) -> None:
    error = error_of(spark, rows, **{"format": "csv", "format.delimeter": ";"})
    assert error.message == 'format "csv" has no option "delimeter"'
    assert error.hint == 'did you mean "delimiter"?'


def test_an_unknown_type(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="file") as failed:
        spark.read.format("penstock").schema("id LONG").option("type", "file").load().collect()
    error = decode(str(failed.value))
    assert error is not None
    assert "files" in (error.hint or "")


def test_no_type(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="is missing") as failed:
        spark.read.format("penstock").schema("id LONG").load().collect()
    assert decode(str(failed.value)) is not None


@pytest.fixture
def inactive(penstock_spark: SparkSession) -> None:
    """A thread without an active session."""
    java: Any = penstock_spark._jvm
    java.org.apache.spark.sql.SparkSession.clearActiveSession()


@pytest.mark.usefixtures("inactive", "spark")
def test_nothing_is_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    writer = spark.range(1).write.format("penstock").mode("overwrite")
    with pytest.raises(PySparkException) as failed:
        writer.options(type="files", path=tmp_path / "out").save()
    error = decode(str(failed.value))
    assert error is not None
    assert error.hint == 'Set .mode("append").'


@pytest.mark.parametrize("committed", [True, False])
def test_a_stream_without_state_cannot_go_on(
    spark: SparkSession, rows: Path, tmp_path: Path, committed: bool
) -> None:
    def run() -> None:
        frame = files(spark.readStream.schema(COLUMNS), rows)
        run_once(frame, tmp_path / "checkpoint", path=tmp_path / "out")

    run()
    if not committed:
        (tmp_path / "checkpoint/commits/0").unlink()
    with pytest.raises(PySparkException) as failed:
        run()
    error = decode(str(failed.value))
    assert error is not None
    assert error.code == "no-state"
    assert '.option("state"' in (error.hint or "")


def test_a_complete_result_is_not_appended(spark: SparkSession, rows: Path, tmp_path: Path) -> None:
    """In output mode complete each batch has all rows and replaces those of the last batch."""
    counts = files(spark.readStream.schema(COLUMNS), rows, state=tmp_path / "seen").groupBy("name")
    writer = counts.count().writeStream.format("penstock").outputMode("complete")
    writer = writer.options(type="files", path=tmp_path / "out")
    with pytest.raises(PySparkException) as failed:
        writer.option("checkpointLocation", tmp_path / "c").start().awaitTermination(60)
    error = decode(str(failed.value))
    assert error is not None
    assert (error.code, error.hint) == ("overwrite", 'Set .outputMode("append").')


def test_secret_options_are_not_shown(
    spark: SparkSession, rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = spark.read.format("penstock").schema(COLUMNS)
    frame = reader.options(type="files", **{"secret.path": rows}).load()
    assert ids(frame) == [1, 2, 3, 4, 5]
    frame.explain(extended=True)
    assert str(rows) not in capsys.readouterr().out


# Whole pipelines

PIPELINE = """\
name: small
sources:
  rows: {type: files, path: in, format: json, schema: "id LONG, at TIMESTAMP, name STRING"}
transforms:
  hours: {type: sql, sql: "SELECT id, hour(at) AS hour FROM rows"}
sinks:
  out: {type: files, from: hours, path: out, format: json}
runtime: {state: state, spark: {spark.sql.shuffle.partitions: 3}}
"""


def test_a_pipeline_in_a_session_of_the_users(
    spark: SparkSession, rows: Path, tmp_path: Path
) -> None:
    pipeline = tmp_path / "small.yaml"
    pipeline.write_text(PIPELINE)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    outcome = penstock.run(pipeline, spark=spark)
    assert (outcome.ending, outcome.errors) == ("complete", {})
    texts = [path.read_text() for path in (tmp_path / "out").glob("part-*")]
    found = [json.loads(line) for text in texts for line in text.splitlines()]
    assert sorted(each["id"] for each in found) == [1, 2, 3, 4, 5]
    assert {each["hour"] for each in found} == {0}, "times are UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"


def test_importing_penstock_alone_imports_no_library() -> None:
    code = "import sys, penstock; print(sorted({m.partition('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pyspark", "pyarrow", "pydantic", "numpy"} & set(eval(done.stdout))

"""Reports of sinks that fail in tasks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import Permanent
from penstock.engine.sinks.sink import SinkTask, write
from penstock.engine.sinks.sink_failures import ATTEMPTS, SinkReport, clear_failures, read_failure
from penstock.engine.tasks import task as spark_task
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.sdk import BatchId, Config, Receipt, Sink, Transient, Writer, report_retry

ROWS = pa.RecordBatch.from_pydict({"id": [1]})
DOWN = Transient("the server is down", code="unreachable", hint="Start the server.")
seen: list[Any] = []


class Server:
    """The behavior of the server of `DownSink`: the errors of the next calls."""

    errors: list[Exception]
    spool: Path


server = Server()


class DownWriter(Writer):
    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: Any = None
    ) -> list[Any]:
        if server.errors:
            raise server.errors.pop(0)
        report_retry(DOWN)
        seen.append(read_failure(server.spool))
        return []

    def commit(self) -> Receipt:
        seen.append(read_failure(server.spool))
        return {}


class DownSink(Sink[Config]):
    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return DownWriter()


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    seen.clear()
    server.errors, server.spool = [], tmp_path
    return Spool("shop", "query", "copy", "sink", directory=str(tmp_path))


def attempt(spool: Spool, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_task, "attempt", lambda: number)
    write(SinkTask.of(DownSink(Config()), spool), BatchId("query", 7), 0, iter([ROWS]))


def test_a_failure_that_a_sink_retries_is_reported_until_it_has_written(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = time.time()
    attempt(spool, 0, monkeypatch)
    while_writing, at_commit = seen
    assert (while_writing.sink, while_writing.error.message) == ("copy", "the server is down")
    assert (while_writing.error.code, while_writing.error.hint) == (DOWN.code, DOWN.hint)
    assert before <= while_writing.since <= time.time()
    assert at_commit is None and read_failure(server.spool) is None


def test_a_failed_attempt_is_reported_until_a_later_attempt_has_written(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.errors = [DOWN]
    with pytest.raises(Transient, match="the server is down"):
        attempt(spool, 0, monkeypatch)
    failure = read_failure(server.spool)
    assert failure is not None and failure.error.message == "the server is down"
    attempt(spool, 1, monkeypatch)
    assert seen[0].since == failure.since
    assert read_failure(server.spool) is None


def test_further_attempts_of_a_task_fail_at_once(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.errors = [Transient(f"failure {number}") for number in range(ATTEMPTS)]
    for number in range(4):
        with pytest.raises(Transient, match=f"^failure {min(number, ATTEMPTS - 1)}$"):
            attempt(spool, number, monkeypatch)
    assert not seen
    attempt(spool, 0, monkeypatch)
    assert len(seen) == 2


def test_a_permanent_failure_is_not_reported(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    server.errors = [Permanent("rejected")]
    with pytest.raises(Permanent, match="rejected"):
        attempt(spool, 0, monkeypatch)
    assert read_failure(server.spool) is None


def test_a_failure_of_several_tasks_lasts_since_the_first_one(spool: Spool) -> None:
    for partition in range(2):
        with (
            pytest.raises(Transient),
            SinkReport.begin(spool, partition, 0).calls(),
        ):
            raise Transient(f"failure {partition}")
        time.sleep(0.01)
    failure = read_failure(server.spool)
    assert failure is not None and failure.error.message == "failure 1"
    first = failure.since
    SinkReport.begin(spool, 0, 0)
    failure = read_failure(server.spool)
    assert failure is not None and failure.since > first
    clear_failures(server.spool)
    assert read_failure(server.spool) is None


def test_a_task_without_a_spool_reports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    server.errors = [DOWN]
    with pytest.raises(Transient, match="the server is down"):
        attempt(Spool("shop", "query", "copy", "sink"), 3, monkeypatch)


def test_a_report_that_cannot_be_written_does_not_hide_the_failure(
    tmp_path: Path,
) -> None:
    (tmp_path / "failing_sinks").write_text("not a directory")
    report = SinkReport(tmp_path / "failing_sinks" / "copy-0.json", "copy")
    with pytest.raises(Transient, match="the server is down"), report.calls():
        raise DOWN

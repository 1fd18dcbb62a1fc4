"""The contract of receiving sources, whose systems push messages."""

from __future__ import annotations

import asyncio
import errno
import inspect
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.core.errors import StateError
from penstock.journal import Journal
from penstock.sdk import Read
from penstock.testing.contract import rows as sample
from penstock.testing.contract.applies import (
    once_per_pipeline,
    once_per_transport,
    once_per_variant,
    run_if,
)
from penstock.testing.contract.pipeline import Pipeline
from penstock.testing.contract.receiver_harness import (
    RECEIVE_TIMEOUT,
    Receiving,
    ReceivingInThread,
)
from penstock.testing.contract.rows import Row, deduplicate, make_rows
from penstock.testing.contract.source import SourceContract
from penstock.testing.contract.source_harness import Put

Send = Callable[[list[bytes]], None]
_POLL_INTERVAL = 0.05
_BAD_PAYLOAD = b'{"id": "not a number"}'
_JOURNAL_SIZE = 1 << 20
_MESSAGE_SIZE = 100_000
"""The bytes of a message, of which about ten fill a journal of `_JOURNAL_SIZE`."""


class ReceivingContract(SourceContract):
    """The contract of receiving sources.

    Set `component`, and define the fixtures `options` and `send`.
    """

    batch_limit = {"max_records": 1}
    has_journal = True

    lossy_reason: ClassVar[str | None] = None
    """The reason why unreceived messages may be lost. None: the system redelivers messages."""

    @pytest.fixture
    def send(self) -> Send:
        """Returns `send(payloads)`, which sends messages as the system's clients do.

        `send` waits for the acknowledgements of the system, if the protocol has acknowledgements.
        """
        raise NotImplementedError

    @pytest.fixture
    def receiving(
        self, create_source: Any, request: pytest.FixtureRequest
    ) -> Iterator[Receiving | ReceivingInThread]:
        """Yields a ready receiver: a process for tests that request it, a thread for others."""
        requested = "receiving" in inspect.signature(request.function).parameters
        receiver = (Receiving if requested else ReceivingInThread)(create_source())
        with closing(receiver) as receiving:
            receiving.await_ready()
            yield receiving

    @pytest.fixture
    def put(self, receiving: Receiving | ReceivingInThread, send: Send) -> Put:
        """Returns `put(rows, schema)`, which sends rows and waits until they are received."""

        def put(rows: Any, schema: pa.Schema) -> None:
            receiving.await_ready()
            end = receiving.journal.end() + len(rows)
            send(self.encode(rows, schema))
            receiving.await_end(end)

        return put

    @pytest.fixture
    def initial_data(self) -> None:
        """Starts no receiver, because `check` may bind the same address."""

    def assert_received(self, source: Any, expected: list[Row]) -> None:
        """Waits until exactly these rows are received. Duplicates are allowed."""
        deadline = time.monotonic() + RECEIVE_TIMEOUT
        while True:
            received = deduplicate(self.read_all(source)[0])
            if received == expected or time.monotonic() > deadline:
                break
            time.sleep(_POLL_INTERVAL)
        assert received == expected

    @once_per_transport
    def test_resume_after_server_crash(  # type: ignore[override]
        self,
        options: dict[str, Any],
        create_source: Any,
        receiving: Receiving,
        put: Put,
        server: Any,
    ) -> None:
        """Checks that the receiver fails with a Transient error and reconnects on its restart."""
        put(make_rows(*range(10)), sample.SIMPLE)
        receiving.receiver.ready.clear()
        server.kill()
        try:
            self.assert_check_is_transient(options)
        finally:
            server.start()
        create_source().check()
        put(make_rows(10), sample.SIMPLE)
        self.assert_received(create_source(), make_rows(*range(11)))

    def test_acknowledgement_is_declared(self, options: dict[str, Any]) -> None:
        """Checks that a source declares either acknowledgements or a loss of messages."""
        acknowledges = self.create_component(options).acknowledges
        assert (acknowledges is not None) is (self.lossy_reason is None), (
            "expected either `acknowledges` or `lossy_reason`, "
            f"found {acknowledges!r} and {self.lossy_reason!r}"
        )

    @once_per_variant
    @run_if(lambda contract: contract.lossy_reason is None, lambda contract: contract.lossy_reason)
    def test_acknowledged_messages_survive_receiver_crash(
        self, create_source: Any, receiving: Receiving, send: Send
    ) -> None:
        for first in (0, 10):
            send(self.encode(make_rows(*range(first, first + 10)), sample.SIMPLE))
            receiving.receiver.kill()
            receiving.await_ready()
        self.assert_received(create_source(), make_rows(*range(20)))

    @once_per_transport
    def test_full_journal_blocks_or_counts_lost_messages(
        self, create_source: Any, options: dict[str, Any], send: Send
    ) -> None:
        """Checks that messages are received or counted as lost, and the size of the journal."""
        source = create_source(journal={"max_size": _JOURNAL_SIZE})
        size = min(self.max_payload_size, _MESSAGE_SIZE)
        count = 4 * _JOURNAL_SIZE // size
        payloads = [b"%04d" % number + b"x" * (size - 4) for number in range(count)]
        sender = threading.Thread(target=lambda: _send_one_by_one(send, payloads), daemon=True)
        with closing(ReceivingInThread(source)) as receiving:
            receiving.await_ready()
            sender.start()
            received, offset = 0, source.initial_offset()
            deadline = time.monotonic() + 2 * RECEIVE_TIMEOUT
            while received + source.lost() < count:
                assert time.monotonic() < deadline, (
                    f"expected {count} messages, found {received} received and {source.lost()} lost"
                )
                end = source.latest_offset(offset)
                assert _measure_journal(source.directory) <= 2 * _JOURNAL_SIZE
                received += sum(
                    batch.num_rows
                    for partition in source.partitions(offset, end)
                    for batch in source.read(partition, Read())
                )
                source.commit(end)
                offset = end
                time.sleep(_POLL_INTERVAL)
            sender.join(RECEIVE_TIMEOUT)
        assert not sender.is_alive() and received + source.lost() >= count

    @once_per_transport
    def test_journal_write_error_ends_receiver(
        self, create_source: Any, send: Send, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Checks that `receive` raises the error, and that a new receiver receives messages."""
        source, stopped = create_source(), threading.Event()
        sender = threading.Thread(target=lambda: _send_until(stopped, send), daemon=True)

        async def receive(journal: Journal) -> None:
            await asyncio.wait_for(source.receive(journal), RECEIVE_TIMEOUT)

        with (
            source.journal() as journal, ThreadPoolExecutor(1) as pool,
            monkeypatch.context() as patch,
        ):  # fmt: skip
            failing = pool.submit(lambda: asyncio.run(receive(journal)))
            assert journal.ready.wait(RECEIVE_TIMEOUT)
            patch.setattr(os, "fdatasync", _raise_disk_full)
            sender.start()
            with pytest.raises(StateError, match="No space left"):
                failing.result(2 * RECEIVE_TIMEOUT)
        stopped.set()
        with closing(ReceivingInThread(create_source())) as receiving:
            receiving.await_ready()
            sender.join(2 * RECEIVE_TIMEOUT)
        assert not sender.is_alive()

    @once_per_pipeline
    @pytest.mark.spark
    def test_pipeline_resumes_after_failure(
        self, options: dict[str, Any], create_source: Any, send: Send, pipeline: Any
    ) -> None:
        """Reads every type, nulls, all metadata and a bad record by Spark, over a failed run."""
        rows = sample.make_typed_rows()
        first, second, third = self.encode(rows, sample.EVERY_TYPE)
        metadata = create_source(sample.EVERY_TYPE).metadata_schema()
        pipeline_run: Pipeline = pipeline(fails_on=2, metadata=metadata)
        source = {**self.create_node(options), **self.batch_limit}
        with pipeline_run.running(source=source) as run:
            run.await_receiving()
            for payload in (first, _BAD_PAYLOAD, second):
                send([payload])
            run.await_failure()
        pipeline_run.disable_failure()
        with pipeline_run.running(source=source) as run:
            run.await_receiving()
            send([third])
            run.await_rows(3)
        assert not run.errors
        self.assert_output(pipeline_run, rows, metadata)


def _send_one_by_one(send: Send, payloads: list[bytes]) -> None:
    for payload in payloads:
        send([payload])


def _send_until(stopped: threading.Event, send: Send) -> None:
    """Sends messages until stopped. Ignores errors of an ended receiver."""
    while not stopped.wait(_POLL_INTERVAL):
        with suppress(Exception):
            send([b"{}"])


def _raise_disk_full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _measure_journal(directory: Path) -> int:
    """Returns the bytes of all segments of a journal."""
    return sum(path.stat().st_size for path in directory.glob("*.segment"))

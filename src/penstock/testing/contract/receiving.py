"""What every source must pass whose system pushes and forgets."""

from __future__ import annotations

import asyncio
import atexit
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.core.errors import StateError
from penstock.core.log import Silent
from penstock.engine.warm import WarmPython
from penstock.journal import Journal, JournalReader
from penstock.runtime.receivers import Receiver
from penstock.runtime.restart import Tries
from penstock.sdk import Read, ReceivingSource
from penstock.spec.models import Restart
from penstock.testing.contract import rows as sample
from penstock.testing.contract.applies import once, only
from penstock.testing.contract.pipeline import SCHEMA, Pipeline
from penstock.testing.contract.reading import Put
from penstock.testing.contract.rows import by_id, simple
from penstock.testing.contract.source import SourceContract

Send = Callable[[list[bytes]], None]
SECONDS_TO_ARRIVE = 30
_LOOK = 0.05
_SMALL = 1 << 20


class _Remembered(Silent):
    """A logger that keeps the warnings."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **facts: Any) -> None:
        self.lines.append((event, facts))


@cache
def _warm() -> WarmPython:
    """What receivers are forked of, which is ten times as fast as starting them."""
    warm = WarmPython.start()
    atexit.register(warm.stop)
    return warm


class Receiving:
    """A receiver that is started again whenever it ends, as in a run."""

    def __init__(self, source: ReceivingSource[Any]) -> None:
        policy = Restart(attempts=1000, backoff="100ms..500ms")
        self._log = _Remembered()
        tries = Tries(policy, self._log)
        self.receiver = Receiver(source, self._log, tries, python=_warm().launcher)
        self.journal = JournalReader(source.directory)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def await_ready(self) -> None:
        """Returns when what is sent is received."""
        ready = self.receiver.ready.wait(SECONDS_TO_ARRIVE)
        assert ready, f"it never sets journal.ready: {self._log.lines}"

    def await_end(self, position: int) -> None:
        """Returns when so much has arrived."""
        until = time.monotonic() + SECONDS_TO_ARRIVE
        while self.journal.end() < position:
            assert time.monotonic() < until, (
                f"{self.journal.end()} of {position} messages arrived, "
                f"{self.receiver.source.lost()} were lost: {self._log.lines}"
            )
            time.sleep(0.01)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self.receiver.end()
        self.receiver.wait(time.monotonic() + SECONDS_TO_ARRIVE)

    def _look(self) -> None:
        while not self._ended.wait(_LOOK):
            error = self.receiver.look()
            assert error is None, error


class ReceivingContract(SourceContract):
    """Give `component`, and the fixtures `options` and `send`."""

    limited = {"max_records": 1}
    forgets: ClassVar[str | None] = None
    """Why messages may be lost while nobody receives, if the system is such."""
    largest: ClassVar[int] = 100_000
    """The bytes of a message that the system surely takes, and of which a few fill a journal."""

    @pytest.fixture
    def send(self) -> Send:
        """`send(payloads)` sends messages as the system's users do, and returns when they are

        told that all is well, if the system tells that.
        """
        raise NotImplementedError

    @pytest.fixture
    def receiving(self, make: Any) -> Iterator[Receiving]:
        """The receiver, running."""
        with closing(Receiving(make())) as receiving:
            receiving.await_ready()
            yield receiving

    @pytest.fixture
    def put(self, receiving: Receiving, send: Send) -> Put:
        def put(rows: Any, schema: pa.Schema) -> None:
            receiving.await_ready()
            end = receiving.journal.end() + len(rows)
            send(self.encoded(rows, schema))
            receiving.await_end(end)

        return put

    @pytest.fixture
    def reachable(self) -> None:
        """Nobody receives: what listens could not be reached twice."""

    def arrived(self, source: Any, ids: set[int]) -> None:
        """These rows and no others arrive, be it that some of them come again."""
        until = time.monotonic() + SECONDS_TO_ARRIVE
        while True:
            found = {row["id"] for row in self.all(source)[0]}
            if found == ids or time.monotonic() > until:
                break
            time.sleep(_LOOK)
        assert found == ids

    def test_a_server_that_is_killed_in_the_middle(  # type: ignore[override]
        self, make: Any, receiving: Receiving, put: Put, server: Any
    ) -> None:
        """The receiver ends with a Transient error, and the next one is connected again."""
        put(simple(*range(10)), sample.SIMPLE)
        receiving.receiver.ready.clear()
        server.kill()
        server.start()
        put(simple(10), sample.SIMPLE)
        self.arrived(make(), {*range(11)})

    def test_who_forgets_is_told_nothing(self, options: dict[str, Any]) -> None:
        told = self.built(options).acknowledges is not None
        assert told is (self.forgets is None), "when is a sender told that a message is safe?"

    @only(lambda case: case.forgets is None, lambda case: case.forgets)
    def test_what_was_acknowledged_survives_a_kill(
        self, make: Any, receiving: Receiving, send: Send
    ) -> None:
        for at in range(0, 30, 10):
            send(self.encoded(simple(*range(at, at + 10)), sample.SIMPLE))
            receiving.receiver.kill()
            receiving.await_ready()
        self.arrived(make(), {*range(30)})

    @once
    def test_a_full_journal_loses_nothing_silently(
        self, make: Any, options: dict[str, Any], send: Send
    ) -> None:
        """What does not fit waits where it comes from, or is counted."""
        source = make(journal={"size": _SMALL})
        count = 4 * _SMALL // self.largest
        large = [b"%04d" % number + b"x" * (self.largest - 4) for number in range(count)]
        sender = threading.Thread(target=lambda: _each(send, large), daemon=True)
        with closing(Receiving(source)) as receiving:
            receiving.await_ready()
            sender.start()
            seen, at = 0, source.initial()
            until = time.monotonic() + 2 * SECONDS_TO_ARRIVE
            while seen + source.lost() < len(large):
                assert time.monotonic() < until, f"{seen} of {len(large)} messages arrived"
                end = source.latest(at)
                assert _size(source.directory) <= 2 * _SMALL
                seen += sum(
                    batch.num_rows
                    for partition in source.partitions(at, end)
                    for batch in source.read(partition, Read())
                )
                source.commit(end)
                at = end
                time.sleep(0.05)
            sender.join(SECONDS_TO_ARRIVE)
        assert not sender.is_alive() and seen + source.lost() >= len(large)

    @once
    def test_a_journal_that_cannot_be_written_ends_the_receiver(
        self, make: Any, send: Send, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It does not go on to lose what is sent; the next one takes it."""
        source, ended = make(), threading.Event()
        sender = threading.Thread(target=lambda: _until(ended, send), daemon=True)

        async def receive(journal: Journal) -> None:
            await asyncio.wait_for(source.receive(journal), SECONDS_TO_ARRIVE)

        with (
            source.journal() as journal, ThreadPoolExecutor(1) as pool,
            monkeypatch.context() as patch,
        ):  # fmt: skip
            first = pool.submit(lambda: asyncio.run(receive(journal)))
            assert journal.ready.wait(SECONDS_TO_ARRIVE)
            patch.setattr(os, "fdatasync", _full)
            sender.start()
            with pytest.raises(StateError, match="No space left"):
                first.result(2 * SECONDS_TO_ARRIVE)
        ended.set()
        with closing(Receiving(make())) as second:
            second.await_ready()
            sender.join(2 * SECONDS_TO_ARRIVE)
        assert not sender.is_alive()

    @pytest.mark.spark
    def test_a_pipeline_reads_it(self, options: dict[str, Any], send: Send, pipeline: Any) -> None:
        run: Pipeline = pipeline()
        with run.going(source={**self.node(options), "schema": SCHEMA}) as going:
            going.await_receiving()
            send(self.encoded(simple(1, 2, 3), sample.SIMPLE))
            going.await_kept(3)
        assert not going.errors and by_id(run.kept()) == simple(1, 2, 3)

    @once
    @pytest.mark.spark
    def test_a_pipeline_that_reads_it_resumes(
        self, options: dict[str, Any], send: Send, pipeline: Any
    ) -> None:
        run: Pipeline = pipeline(fails_on=1)
        source = {**self.node(options), **self.limited, "schema": SCHEMA}
        with run.going(source=source) as going:
            going.await_receiving()
            for at in range(3):
                send(self.encoded(simple(at), sample.SIMPLE))
            going.await_failure()
        run.mend()
        with run.going(source=source) as going:
            going.await_receiving()
            send(self.encoded(simple(3), sample.SIMPLE))
            going.await_kept(4)
        assert not going.errors and by_id(run.kept()) == simple(*range(4))


def _each(send: Send, payloads: list[bytes]) -> None:
    for payload in payloads:
        send([payload])


def _until(ended: threading.Event, send: Send) -> None:
    """Sends, also to a receiver that takes nothing any more."""
    while not ended.wait(_LOOK):
        with suppress(Exception):
            send([b"{}"])


def _full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.segment"))

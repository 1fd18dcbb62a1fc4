"""The journal: what was acknowledged is there, whatever happens to those who write and read it."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.core.errors import Permanent, StateError
from penstock.journal import Bounds, Journal, JournalReader, Message
from penstock.journal.mark import Mark
from penstock.journal.message import size_of
from penstock.journal.segment import GROUP_BYTES, list_segments

SCHEMA = pa.schema([("payload", pa.binary()), ("topic", pa.string()), ("qos", pa.int32())])
LARGE = Bounds()
SMALL = Bounds(segment=2_000)


def message(number: int, size: int = 0) -> Message:
    return Message(b"%06d" % number + b"x" * size, {"topic": f"t{number % 3}", "qos": number % 2})


def append(writer: Journal, numbers: Sequence[int], size: int = 0) -> None:
    """Each number by an append of its own, one after the other."""

    async def each() -> None:
        for number in numbers:
            await writer.append([message(number, size)])

    asyncio.run(each())


def written(directory: Path, numbers: Sequence[int], bounds: Bounds = LARGE) -> None:
    with Journal(directory, SCHEMA, bounds) as writer:
        append(writer, numbers)


def set_durable_end(directory: Path, end: int) -> None:
    """Sets the end of the records that are durable, as after a failure of power."""
    mark = Mark(directory)
    mark.end = end
    mark.close()


def numbers(directory: Path, start: int | None = None, end: int | None = None) -> list[int]:
    """The records of a range, all of the journal's if none is given."""
    reader = JournalReader(directory)
    start = reader.begin() if start is None else start
    end = reader.end() if end is None else end
    found, at = [], start
    for first, batch in reader.read(start, end):
        assert first == at
        at += batch.num_rows
        found += [int(payload[:6]) for payload in batch.column("payload").to_pylist()]
    return found


def test_flush_waits_for_earlier_appends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, write = threading.Event(), os.fdatasync

    def wait_and_write(descriptor: int) -> None:
        assert written.wait(30)
        write(descriptor)

    async def flush(writer: Journal) -> None:
        await writer.flush()
        monkeypatch.setattr(os, "fdatasync", wait_and_write)
        await writer.take([message(1)])
        flushing = asyncio.create_task(writer.flush())
        assert not (await asyncio.wait([flushing], timeout=0.05))[0] and writer.end == 0
        written.set()
        await flushing
        assert writer.end == 1

    with Journal(tmp_path, SCHEMA) as writer:
        asyncio.run(flush(writer))
    assert numbers(tmp_path) == [1]


def test_flush_fails_with_an_earlier_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def flush(writer: Journal) -> None:
        monkeypatch.setattr(os, "fdatasync", fail)
        await writer.take([message(1)])
        for _ in range(2):
            with pytest.raises(StateError, match="No space left on device"):
                await writer.flush()

    with Journal(tmp_path, SCHEMA) as writer:
        asyncio.run(flush(writer))
        monkeypatch.undo()


def test_appended_messages_are_read_with_their_metadata(tmp_path: Path) -> None:
    with Journal(tmp_path, SCHEMA) as writer:
        asyncio.run(writer.append([message(1), Message(None), Message("é".encode(), {"qos": 2})]))
        asyncio.run(writer.append([]))
        assert writer.end == 3
    ((first, batch),) = JournalReader(tmp_path).read(0, 3)
    assert first == 0 and batch.schema == SCHEMA
    assert batch.to_pylist() == [
        {"payload": b"000001", "topic": "t1", "qos": 1},
        {"payload": None, "topic": None, "qos": None},
        {"payload": "é".encode(), "topic": None, "qos": 2},
    ]


@pytest.mark.slow
def test_parts_of_a_range(tmp_path: Path) -> None:
    written(tmp_path, range(200), SMALL)
    assert len(list_segments(tmp_path)) > 3
    for start, end in [(0, 200), (0, 1), (199, 200), (57, 58), (13, 187), (50, 50)]:
        assert numbers(tmp_path, start, end) == list(range(start, end))
    ranges = JournalReader(tmp_path).ranges(13, 187)
    assert len(ranges) > 2 and ranges[0][0] == 13 and ranges[-1][1] == 187
    assert [r for pair in ranges for r in numbers(tmp_path, *pair)] == list(range(13, 187))


def test_parts_of_frames_with_several_records(tmp_path: Path) -> None:
    with Journal(tmp_path, SCHEMA) as writer:
        for begin in (0, 4):
            asyncio.run(writer.append([message(number) for number in range(begin, begin + 4)]))
    (segment,) = list_segments(tmp_path)
    assert [frame.rows for frame in segment.frames()] == [4, 4]
    for start in range(8):
        for end in range(start + 1, 9):
            assert numbers(tmp_path, start, end) == list(range(start, end))


@pytest.mark.slow
def test_small_appends_are_read_as_one_batch(tmp_path: Path) -> None:
    """The conversion of a batch for each append would take minutes of a stream of transactions."""
    written(tmp_path, range(500))
    with Journal(tmp_path, SCHEMA) as writer:
        append(writer, range(500, 503), GROUP_BYTES)
    batches = [batch.num_rows for _, batch in JournalReader(tmp_path).read(0, 503)]
    assert batches == [500, 1, 1, 1]
    assert numbers(tmp_path, 7, 499) == [*range(7, 499)]


def test_a_frame_of_another_position_is_the_end(tmp_path: Path) -> None:
    """The checksum of a frame that an older file has left behind is valid."""
    written(tmp_path, range(3), Bounds(flush="each"))
    (segment,) = list_segments(tmp_path)
    whole = segment.path.read_bytes()
    first, second, third = segment.frames()
    ends = [frame.offset + frame.length for frame in (first, second, third)]
    segment.path.write_bytes(whole[: ends[0]] + whole[ends[1] : ends[2]])
    set_durable_end(tmp_path, 1)
    assert [frame.first for frame in segment.frames()] == [0]
    written(tmp_path, [7])
    assert numbers(tmp_path) == [0, 7]


def test_appends_at_the_same_time_share_a_sync(tmp_path: Path) -> None:
    async def together(writer: Journal) -> None:
        await asyncio.gather(*(writer.append([message(number)]) for number in range(1_000)))

    with Journal(tmp_path, SCHEMA) as writer:
        asyncio.run(together(writer))
    assert numbers(tmp_path) == list(range(1_000))
    assert sum(1 for each in list_segments(tmp_path) for _ in each.frames()) < 500


@pytest.mark.quick(1)
@pytest.mark.parametrize("flush", ["each", "group", 0.01])
def test_a_journal_goes_on_where_it_ended(tmp_path: Path, flush: str | float) -> None:
    for begin in range(0, 40, 10):
        written(tmp_path, range(begin, begin + 10), Bounds(segment=2_000, flush=flush))  # type: ignore[arg-type]
    assert numbers(tmp_path) == list(range(40))


@pytest.mark.slow
def test_a_torn_tail_is_cut_wherever_it_is_torn(tmp_path: Path) -> None:
    written(tmp_path, range(3), Bounds(flush="each"))
    (segment,) = list_segments(tmp_path)
    whole = segment.path.read_bytes()
    *_, before, last = segment.frames()
    end = before.offset + before.length
    assert end < last.offset < len(whole)
    for torn in range(end, len(whole)):
        segment.path.write_bytes(whole[:torn])
        set_durable_end(tmp_path, 2)
        written(tmp_path, [7])
        assert numbers(tmp_path) == [0, 1, 7]


@pytest.mark.slow
def test_a_file_without_its_header_is_made_anew(tmp_path: Path) -> None:
    written(tmp_path, range(100), SMALL)
    end = JournalReader(tmp_path).end()
    (tmp_path / f"{end:020d}.segment").write_bytes(b"PSJ")
    written(tmp_path, [100])
    assert numbers(tmp_path) == list(range(101))


@pytest.mark.slow
def test_corrupt_records_are_an_error_and_their_positions_are_not_used_again(
    tmp_path: Path,
) -> None:
    written(tmp_path, range(100), SMALL)
    first, *_, last = list_segments(tmp_path)
    for segment in (first, last):
        damaged = bytearray(segment.path.read_bytes())
        damaged[-1] ^= 1
        segment.path.write_bytes(damaged)
    written(tmp_path, [100])
    assert JournalReader(tmp_path).end() == 101
    for start, end in ((0, 50), (50, 101)):
        with pytest.raises(StateError, match="is corrupt") as caught:
            numbers(tmp_path, start, end)
        assert caught.value.code == "corrupt-journal"
    assert numbers(tmp_path, 50, last.first) == list(range(50, last.first))
    assert numbers(tmp_path, 100) == [100]


@pytest.mark.quick(1)
@pytest.mark.parametrize("kept", [0, 1])
def test_missing_records_are_an_error_and_their_positions_are_not_used_again(
    tmp_path: Path, kept: int
) -> None:
    written(tmp_path, range(100), SMALL)
    segments = list_segments(tmp_path)
    for segment in segments[kept:]:
        segment.path.unlink()
    written(tmp_path, [100])
    reader = JournalReader(tmp_path)
    missing = segments[kept].first
    assert reader.ranges(100, 101) == [(100, 101)]
    with pytest.raises(StateError, match=f"no records {missing} to 99"):
        for start, end in reader.ranges(missing, 101):
            numbers(tmp_path, start, end)
    assert numbers(tmp_path, 0, missing) == list(range(missing))


def test_missing_records_are_an_error_of_their_removal(tmp_path: Path) -> None:
    """The last record, which is kept, is missing."""
    written(tmp_path, range(3), Bounds(flush="each"))
    (segment,) = list_segments(tmp_path)
    segment.path.write_bytes(segment.path.read_bytes()[:-1])
    written(tmp_path, [])
    with pytest.raises(StateError, match="no records 2 to 2") as caught:
        JournalReader(tmp_path).remove_before(3)
    assert caught.value.code == "corrupt-journal" and segment.path.exists()


@pytest.mark.slow
def test_a_journal_that_ends_before_the_read_records_is_an_error(tmp_path: Path) -> None:
    written(tmp_path, range(100), SMALL)
    reader = JournalReader(tmp_path)
    set_durable_end(tmp_path, 90)
    reader.check_end(100)
    for path in tmp_path.iterdir():
        path.unlink()
    written(tmp_path, range(5))
    with pytest.raises(StateError, match="no records 5 to 99") as caught:
        reader.check_end(100)
    assert caught.value.code == "corrupt-journal"


@pytest.mark.slow
def test_acknowledged_records_are_removed_and_positions_continue(tmp_path: Path) -> None:
    written(tmp_path, range(100), SMALL)
    reader = JournalReader(tmp_path)
    reader.remove_before(50)
    assert 0 < reader.begin() <= 50
    assert numbers(tmp_path, 50) == list(range(50, 100))
    with pytest.raises(StateError, match="has no records 0 to"):
        numbers(tmp_path, 0)
    reader.remove_before(100)
    assert len(list_segments(tmp_path)) == 1
    written(tmp_path, [100])
    assert numbers(tmp_path, 100) == [100]


@pytest.mark.slow
def test_a_full_journal_makes_its_senders_wait(tmp_path: Path) -> None:
    async def fill(writer: Journal) -> int:
        for number in range(1_000):
            try:
                await asyncio.wait_for(writer.append([message(number, 900)]), 0.5)
            except TimeoutError:
                return number
        raise AssertionError("it is never full")

    with Journal(tmp_path, SCHEMA, Bounds(size=20_000, segment=4_000)) as writer:
        count = asyncio.run(fill(writer))
        assert writer.full and 10 < count < 25
        assert not writer.offer([message(0), message(1)])
        assert JournalReader(tmp_path).lost() == 2
        JournalReader(tmp_path).remove_before(writer.end)
        assert not writer.full
        append(writer, [count])
        assert writer.offer([message(count + 1)])
    assert numbers(tmp_path, count) == [count, count + 1]
    assert JournalReader(tmp_path).lost() == 2


def test_a_record_larger_than_the_journal_is_an_error(tmp_path: Path) -> None:
    with Journal(tmp_path, SCHEMA, Bounds(size=20_000)) as writer:
        with pytest.raises(Permanent, match="cannot append"):
            append(writer, [1], size=30_000)
        append(writer, [2])
    assert numbers(tmp_path) == [2]


def test_an_append_of_the_size_of_the_journal(tmp_path: Path) -> None:
    size = size_of([message(0)])
    with Journal(tmp_path, SCHEMA, Bounds(size=20_000)) as writer:
        append(writer, [1], size=20_000 - size)
        assert writer.full
    assert numbers(tmp_path) == [1]


def test_a_full_disk_is_an_error_of_all_appends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, [0])

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = Journal(tmp_path, SCHEMA)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", full)
        with pytest.raises(StateError, match="No space left"):
            append(writer, [1])
    with pytest.raises(StateError, match="No space left"):
        append(writer, [2])
    with pytest.raises(StateError, match="No space left"):
        writer.offer([message(3)])
    assert (writer.end, JournalReader(tmp_path).lost()) == (1, 0)
    writer.close()
    written(tmp_path, [4])
    assert numbers(tmp_path)[-1] == 4


def test_appends_after_a_failed_one_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were waiting while it failed. The disk may have lost its records."""
    waiting, write = threading.Event(), os.fdatasync
    failures = [errno.EIO]

    def fail_once(descriptor: int) -> None:
        assert waiting.wait(30)
        if failures:
            raise OSError(failures.pop(), "Input/output error")
        write(descriptor)

    async def take(writer: Journal) -> None:
        await writer.take([message(1)])
        while writer._waiting:  # the thread has the append
            await asyncio.sleep(0.001)
        await writer.take([message(2)])
        waiting.set()
        with pytest.raises(StateError, match="Input/output error"):
            await writer.flush()

    writer = Journal(tmp_path, SCHEMA)
    monkeypatch.setattr(os, "fdatasync", fail_once)
    asyncio.run(take(writer))
    writer.close()
    assert JournalReader(tmp_path).end() == 0
    written(tmp_path, [3])
    assert numbers(tmp_path) == [1, 3]


def test_a_failed_flush_between_appends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error of the next append, which does not wait for ever."""

    def fail(descriptor: int) -> None:
        failed.set()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def append_twice() -> None:
        await writer.append([message(1)])
        await asyncio.to_thread(failed.wait, 30)
        await asyncio.wait_for(writer.append([message(2)]), 10)

    failed = threading.Event()
    writer = Journal(tmp_path, SCHEMA, Bounds(flush=0.2))
    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(StateError, match="No space left on device"):
        asyncio.run(append_twice())
    assert writer.end == 0
    writer.close()


def test_other_metadata_begins_a_new_file(tmp_path: Path) -> None:
    written(tmp_path, range(3))
    other = pa.schema([("payload", pa.binary()), ("room", pa.string())])
    with Journal(tmp_path, other) as writer:
        asyncio.run(writer.append([Message(b"000003", {"room": "a"})]))
    assert numbers(tmp_path) == [0, 1, 2, 3]
    (_, last) = list(JournalReader(tmp_path).read(0, 4))[-1]
    assert last.schema == other


APPENDING = """
import asyncio, sys
from pathlib import Path
import pyarrow as pa
from penstock.journal import Bounds, Journal, Message

async def main():
    schema = pa.schema([("payload", pa.binary())])
    writer = Journal(Path(sys.argv[1]), schema, Bounds(segment=50_000))
    async def sender(name):
        for number in range(1_000_000):
            await writer.append([Message(b"%06d %02d" % (number, name))])
            print(name, number, flush=True)
    await asyncio.gather(*(sender(name) for name in range(8)))

asyncio.run(main())
"""


@pytest.mark.slow
def test_acknowledged_records_survive_a_kill(tmp_path: Path) -> None:
    for round_ in range(3):
        run = subprocess.Popen(
            [sys.executable, "-c", APPENDING, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert run.stdout is not None
        lines = [run.stdout.readline() for _ in range(500 * (round_ + 1))]
        run.send_signal(signal.SIGKILL)
        lines += run.stdout.read().splitlines(keepends=True)
        run.wait()
        acknowledged = {
            (int(words[0]), int(words[1]))
            for line in lines
            if len(words := line.split()) == 2 and line.endswith("\n")
        }
        with Journal(tmp_path, pa.schema([("payload", pa.binary())])):
            pass
        reader = JournalReader(tmp_path)
        found = [
            payload.split()
            for _, batch in reader.read(reader.begin(), reader.end())
            for payload in batch.column("payload").to_pylist()
        ]
        there = {(int(name), int(number)) for number, name in found}
        assert acknowledged <= there
        reader.remove_before(reader.end())


@pytest.mark.slow
def test_a_journal_never_outgrows_its_bounds(tmp_path: Path) -> None:
    async def flood(writer: Journal) -> None:
        appends = [asyncio.ensure_future(writer.append([message(n, 900)])) for n in range(200)]
        for _ in range(50):
            await asyncio.sleep(0.01)
            assert sum(segment.size for segment in list_segments(tmp_path)) < 25_000
        JournalReader(tmp_path).remove_before(writer.end)
        for append in appends:
            append.cancel()

    with Journal(tmp_path, SCHEMA, Bounds(size=20_000, segment=4_000)) as writer:
        asyncio.run(flood(writer))


@pytest.mark.slow
def test_messages_without_acknowledgement_wait_for_space(tmp_path: Path) -> None:
    async def fill(writer: Journal) -> int:
        for number in range(1_000):
            try:
                await asyncio.wait_for(writer.take([message(number, 900)]), 0.5)
            except TimeoutError:
                return number
        raise AssertionError("it is never full")

    with Journal(tmp_path, SCHEMA, Bounds(size=20_000, segment=4_000)) as writer:
        count = asyncio.run(fill(writer))
    assert 10 < count < 25 and numbers(tmp_path) == [*range(count)]
    assert JournalReader(tmp_path).lost() == 0


def test_the_last_record_remains(tmp_path: Path) -> None:
    """A new segment is empty, so the one before it has the last record."""
    with Journal(tmp_path, SCHEMA, Bounds(segment=1)) as writer:
        asyncio.run(writer.append([Message(b"first")]))
        asyncio.run(writer.append([Message(b"last")]))
    reader = JournalReader(tmp_path)
    reader.remove_before(reader.end())
    assert reader.begin() == reader.end() - 1
    ((_, batch),) = reader.read(reader.begin(), reader.end())
    assert batch.column("payload").to_pylist() == [b"last"]


def test_records_that_were_read_take_no_space(tmp_path: Path) -> None:
    """One frame with all records fills the journal. Its last record remains, alone."""
    with Journal(tmp_path, SCHEMA, Bounds(size=10_000, segment=1_000)) as writer:
        messages = [Message(b"%d" % number + bytes(1_000)) for number in range(12)]
        asyncio.run(writer.append(messages[:9]))
        asyncio.run(writer.append(messages[9:]))
        reader = JournalReader(tmp_path)
        assert writer.full
        reader.remove_before(11)
        assert reader.begin() == 9
        reader.remove_before(12)
        assert reader.begin() == 11 and not writer.full
        ((first, batch),) = reader.read(11, 12)
        assert first == 11 and batch.column("payload").to_pylist() == [messages[11].payload]
        asyncio.run(writer.append([Message(b"next")]))
        reader.remove_before(13)
        assert reader.ranges(12, 13) == [(12, 13)]
    with Journal(tmp_path, SCHEMA) as writer:
        assert writer.end == 13

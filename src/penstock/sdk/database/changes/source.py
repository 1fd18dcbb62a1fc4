"""A source of rows and their changes, which a receiver has written to a journal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from penstock.core.errors import DecodeError, Permanent, RecordError, Transient
from penstock.journal import Journal, Message
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.capability import Capability
from penstock.sdk.columns.conform import decode_error
from penstock.sdk.database.changes.config import ChangesOptions
from penstock.sdk.database.changes.loss import LostChanges, loss_message, loss_payload
from penstock.sdk.database.changes.measuring import RetainedLogFile
from penstock.sdk.database.changes.progress import DONE, PROGRESS, Confirmed, Progress
from penstock.sdk.messages.size_limit import reject_oversized
from penstock.sdk.receiving import ORIGIN, ReceivingSource
from penstock.sdk.record import Read
from penstock.sdk.retained_log import RetainedLog
from penstock.sdk.source import Offset

C = TypeVar("C", bound=ChangesOptions)


def metadata_of(transaction: pa.DataType) -> pa.Schema:
    """Returns the metadata columns of a change. The row of a snapshot has no transaction."""
    return pa.schema(
        [
            ("lsn", pa.string()),
            ("transaction", transaction),
            ("commit_time", pa.timestamp("us", tz="UTC")),
            ("snapshot", pa.bool_()),
        ]
    )


class ChangesSource(ReceivingSource[C]):
    """Base class of sources of changes.

    Define `relation`, `rows_of` and `receive_log`. `metadata` has the metadata columns of a change.
    """

    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.ORDERED,
            Capability.TAIL,
            Capability.ROWS,
        }
    )
    carries_operations = True
    catches_up = True
    declares_primary_key = True
    locates_rows = True
    metadata: ClassVar[pa.Schema]

    @property
    @abstractmethod
    def relation(self) -> str:
        """The name of the table or collection."""

    @abstractmethod
    def rows_of(self, payloads: Sequence[bytes]) -> pa.RecordBatch:
        """Returns the rows of payloads of the journal, with their operations.

        Raises ArrowInvalid or RecordError for a value that does not fit.
        """

    @abstractmethod
    async def receive_log(self, sources: Sequence[tuple[ReceivingSource[Any], Journal]]) -> None:
        """Receives for sources with the same `shared_receiver` until cancelled.

        Raises LostChanges, Transient or Permanent.
        """

    def dead_letter(self, payload: bytes) -> bytes:
        """Returns a payload of the journal as that of a dead letter, which `rows_of` reads, too."""
        return payload

    async def receive(self, journal: Journal) -> None:
        await self.receive_shared([(self, journal)])

    async def receive_shared(self, sources: Sequence[tuple[ReceivingSource[Any], Journal]]) -> None:
        try:
            await self.receive_log(sources)
        except LostChanges as loss:
            for source, journal in sources:
                assert isinstance(source, ChangesSource)
                if loss.table in (None, source.relation):
                    await source.go_on_after(loss, journal)
            raise Transient(f"continues after a loss: {loss.message}", code="data-gone") from loss

    async def go_on_after(self, loss: LostChanges, journal: Journal) -> None:
        """Prepares to receive after a loss, as `on_data_loss` says. Raises Permanent with `fail`.

        The record of the loss is durable before the position in the log is given up, so that a
        crash between them repeats the record.
        """
        policy = self.config.on_data_loss
        if policy == "fail":
            raise Permanent(
                loss.message, code=loss.code,
                hint="Set on_data_loss: snapshot to read the rows again, or continue to read the "
                f"changes that remain. {loss.hint or ''}".strip(),
            ) from loss  # fmt: skip
        known = self.progress()
        progress = Progress(chunk="" if policy == "snapshot" else known.chunk)
        metadata = {"lsn": "", "snapshot": False, **progress._asdict()}
        await journal.append([Message(loss_payload(loss.message), metadata)])
        end = loss.end if policy == "continue" else None
        Confirmed(self.directory).reset(*(end or ()))

    def progress(self) -> Progress:
        """Returns the progress of the journal, which is complete without `snapshot`."""
        first = Progress() if self.config.snapshot else Progress(chunk=DONE)
        return Progress.read(self._reader) or first

    def retained(self) -> RetainedLog | None:
        return RetainedLogFile(self.directory).read()

    def message_metadata_schema(self) -> pa.Schema:
        return pa.schema([*self.metadata, *PROGRESS])

    def metadata_schema(self) -> pa.Schema:
        hidden = PROGRESS.names
        return pa.schema([field for field in super().metadata_schema() if field.name not in hidden])

    def changes_only(self, messages: pa.RecordBatch, start: int) -> pa.RecordBatch:
        """Returns the messages that are changes, of a batch that begins at `start`."""
        return messages

    def partitions(  # type: ignore[override]
        self, start: Offset, end: Offset
    ) -> Sequence[tuple[int, int, int]]:
        """Returns ranges of records, each with the start of the batch."""
        return [(*part, start["position"]) for part in super().partitions(start, end)]

    def read(  # type: ignore[override]
        self, partition: tuple[int, int, int], read: Read
    ) -> Iterator[pa.RecordBatch]:
        begin, end, start = partition
        for first, batch in self._reader.read(begin, end):
            count = batch.num_rows
            located = {
                "payload": batch.column("payload"),
                "origin": pa.repeat(ORIGIN, count),
                "position": pa.array(range(first, first + count), pa.int64()),
            }
            others = {name: batch.column(name) for name in read.metadata if name not in located}
            rows = pa.record_batch({**located, **others})
            changes = reject_oversized(rows, batch.column("rejected_size"), read)
            yield from self._decoded(self.changes_only(changes, start), read)

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        try:
            return self.rows_of([payload])
        except pa.ArrowException as error:
            raise decode_error(error) from None

    def _decoded(self, messages: pa.RecordBatch, read: Read) -> Iterator[pa.RecordBatch]:
        payloads = messages.column("payload").to_pylist()

        def attempt(start: int, stop: int) -> pa.RecordBatch:
            part = payloads[start:stop]
            lost = next(filter(None, map(loss_message, part)), None)
            if lost is not None:
                raise DecodeError(lost, code="data-gone")
            return self.rows_of(part)

        for start, stop, result in bisect_failures(len(payloads), attempt, decode_error):
            if isinstance(result, RecordError):
                position = messages.column("position")[start].as_py()
                is_loss = loss_message(payloads[start]) is not None
                payload = None if is_loss else self.dead_letter(payloads[start])
                read.reject(payload, ORIGIN, position, result)
                continue
            columns = [
                *result.columns,
                *(messages.column(name).slice(start, stop - start) for name in read.metadata),
            ]
            names = [*result.schema.names, *read.metadata]
            yield pa.RecordBatch.from_arrays(columns, names)

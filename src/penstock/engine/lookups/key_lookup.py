"""Lookups by key in tasks: the rows of the keys of a batch, from the system or the cache."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.core.error_codec import encode_errors, raised_in
from penstock.core.errors import ConnectError, Rejected, Transient
from penstock.engine.lookups.lookup_cache import Key, LookupCache
from penstock.engine.lookups.served_lookup import ServedLookup
from penstock.engine.tasks import task as spark_task
from penstock.engine.tasks.dead_letter_writer import DeadLetterWriter, Spool
from penstock.sdk import Capability, LookupSource, Read
from penstock.sdk.columns.conform import conform
from penstock.sdk.columns.json_columns import find_invalid_json
from penstock.sdk.columns.row_json import row_payload
from penstock.sdk.columns.utf8 import find_invalid_text, replace_invalid_text
from penstock.sdk.decoding import decode_in_fork
from penstock.sdk.record import PAYLOAD


@dataclass(frozen=True)
class KeyLookup:
    """The parameters of a lookup table whose rows are looked up by key, in a task.

    `rows` are its columns, those of the source and then the metadata columns, all nullable. Bad
    rows go to the spool, and are no rows. Tasks of the same `run_id` in the same process share a
    client and a cache of at most `max_bytes`, whose rows are used for `ttl` seconds.
    """

    source: LookupSource[Any]
    rows: pa.Schema
    metadata: Mapping[str, str]
    spool: Spool
    ttl: float
    max_bytes: int
    run_id: str
    keeps_missing: bool = True
    """Whether the absence of a row is used as long as a row. Otherwise it is used in its batch."""
    served: ServedLookup | None = None
    """The lookup by the driver, of a table in files that executors may not share."""

    @property
    def keys(self) -> pa.Schema:
        """The columns of the key."""
        return pa.schema([self.rows.field(name) for name in self.source.primary_key])

    @encode_errors
    def __call__(self, arrays: Iterator[pa.StructArray]) -> Iterator[pa.StructArray]:
        """Yields the row of each key, null without a row."""
        yield from self.rows_of(map(pa.RecordBatch.from_struct_array, arrays))

    def rows_of(self, keys: Iterator[pa.RecordBatch]) -> Iterator[pa.StructArray]:
        """Yields the row of each key, for the batches of keys of a task."""
        dead_letters = self.spool.begin(spark_task.batch_number(), spark_task.partition())
        table = _TABLES.get(self)
        table.begin(dead_letters, isolated=spark_task.is_retry())
        for batch in keys:
            yield table.rows_of(batch)
        dead_letters.partition = f"{dead_letters.partition}-{dead_letters.digest()}"
        dead_letters.close()


class OpenTable:
    """A lookup table that this process has opened: its client and its cache."""

    def __init__(self, lookup: KeyLookup) -> None:
        self.lookup = lookup
        self._source: LookupSource[Any] = pickle.loads(pickle.dumps(lookup.source))
        self._cache = LookupCache(
            lookup.rows, lookup.ttl, lookup.max_bytes, keeps_missing=lookup.keeps_missing
        )
        self._client: Any = None
        self._is_open = False

    def begin(self, dead_letters: DeadLetterWriter, *, isolated: bool) -> None:
        """Begins a task. With `isolated` a decoder that crashes does not end this process."""
        self._dead_letters, self._isolated = dead_letters, isolated
        self._cache.begin(dead_letters.batch)

    def close(self) -> None:
        """Closes the client, if there is one. Errors are ignored."""
        client, self._client, was_open = self._client, None, self._is_open
        self._is_open = False
        if was_open:
            with suppress(Exception):
                self._source.close_client(client)

    def rows_of(self, keys: pa.RecordBatch) -> pa.StructArray:
        """Returns the row of each key. Looks up each key once.

        A key with a null has none. A key with text that is not UTF-8 is a dead letter.
        """
        invalid = find_invalid_text(keys)
        for number, error in invalid.items():
            self._dead_letters.add(row_payload(keys, number), error)
        tuples = _tuples(replace_invalid_text(keys) if invalid else keys, keys.schema.names)
        tuples = [(None,) if at in invalid else key for at, key in enumerate(tuples)]
        distinct = [key for key in dict.fromkeys(tuples) if None not in key]
        places = self._cache.places(distinct)
        missing = [key for key in distinct if key not in places]
        rows = self._cache.rows
        if missing:
            found, new = self._look_up(missing)
            count = rows.num_rows
            places |= {key: None if at is None else count + at for key, at in new.items()}
            rows = pa.concat_batches([rows, found])
            self._cache.add(found, new)
        taken = rows.take(pa.array([places.get(key) for key in tuples], pa.int64()))
        has_row = np.array([places.get(key) is not None for key in tuples], bool)
        return pa.StructArray.from_arrays(
            taken.columns, fields=list(self.lookup.rows), mask=pa.array(~has_row)
        )

    def _look_up(self, keys: Sequence[Key]) -> tuple[pa.RecordBatch, dict[Key, int | None]]:
        """Returns rows from the system, and the place of the row of each key."""
        batches, places, count = [], dict.fromkeys(keys), 0
        size = self._source.keys_per_lookup
        for start in range(0, len(keys), size):
            part = keys[start : start + size]
            columns = [
                pa.array(values, field.type)
                for values, field in zip(zip(*part, strict=True), self.lookup.keys, strict=True)
            ]
            asked = pa.RecordBatch.from_arrays(columns, schema=self.lookup.keys)
            rows, index = self._decoded(asked)
            for place, number in enumerate(index):
                places[part[number]] = count + place
            batches.append(rows)
            count += rows.num_rows
        return pa.concat_batches(batches), places

    def _decoded(self, keys: pa.RecordBatch) -> tuple[pa.RecordBatch, list[int]]:
        """Returns valid rows, and the index of the key of each row."""
        read = Read(metadata=tuple(self.lookup.metadata.values()), isolated=self._isolated)
        found = self._request(keys, read)
        if Capability.BYTES in self._source.capabilities:
            rows, index = self._decode(found)
        else:
            rows, index = self._matched(keys, found)
        for record in read.bad:
            self._dead_letters.add(record.payload, record.error, record.origin, 0)
        rows = rows.rename_columns(self.lookup.rows.names)
        asked = keys.take(pa.array(index, pa.int64()))
        for field in self.lookup.keys:
            place = rows.schema.get_field_index(field.name)
            rows = rows.set_column(place, field, asked.column(field.name))
        rows = conform(rows, self.lookup.rows)
        bad = find_invalid_json(rows)
        for number, error in bad.items():
            self._dead_letters.add(row_payload(rows, number), error)
        if bad:
            kept = [number for number in range(rows.num_rows) if number not in bad]
            rows, index = rows.take(pa.array(kept, pa.int64())), [index[place] for place in kept]
        return rows, index

    def _request(self, keys: pa.RecordBatch, read: Read) -> pa.RecordBatch:
        """Returns the response of the system, of a new client if one that was open fails."""
        if self.lookup.served is not None:
            return self.lookup.served(keys, read)
        with raised_in(self.lookup.spool.node):
            return self._response(keys, read)

    def _response(self, keys: pa.RecordBatch, read: Read) -> pa.RecordBatch:
        was_open = self._is_open
        try:
            if not self._is_open:
                self._client, self._is_open = self._source.open(), True
            return self._source.lookup(self._client, keys, read)
        except Transient:
            self.close()
            if not was_open:
                raise
        except ConnectError:
            self.close()
            raise
        read.bad.clear()
        return self._response(keys, read)

    def _decode(self, found: pa.RecordBatch) -> tuple[pa.RecordBatch, list[int]]:
        """Returns the rows of payloads with metadata, and the index of the key of each row."""
        source, names = self._source, self.lookup.keys.names
        assert source.format is not None and source.columns is not None
        columns = pa.schema(
            [
                field.with_nullable(True) if field.name in names else field
                for field in source.columns
            ]
        )
        decode = decode_in_fork if self._isolated else type(source.format).rows
        decoded = decode(source.format, found.column("payload"), columns)
        origins, positions = found.column("origin"), found.column("position").to_pylist()
        for index, text, part, error in decoded.failures:
            self._dead_letters.add(text, error, origins[index].as_py(), 0, part)
        numbers = range(len(positions)) if decoded.index is None else decoded.index.to_pylist()
        kept = self._single(found, list(numbers))
        payloads = pa.array([numbers[place] for place in kept], pa.int64())
        places = [positions[number] for number in payloads.to_pylist()]
        rows = decoded.rows.take(pa.array(kept, pa.int64()))
        for name in self.lookup.metadata.values():
            rows = rows.append_column(f"metadata:{name}", found.column(name).take(payloads))
        return rows, places

    def _single(self, found: pa.RecordBatch, numbers: Sequence[int]) -> list[int]:
        """Returns the places of the rows whose payload has one row. Rejects other payloads."""
        counts = np.bincount(np.array(numbers, np.int64), minlength=found.num_rows)
        for number in np.flatnonzero(counts > 1).tolist():
            payload, origin = (found.column(name)[number].as_py() for name in PAYLOAD.names[:2])
            error = Rejected(f"expected one row, found {counts[number]}", code="several-rows")
            self._dead_letters.add(payload, error, origin, 0)
        return [place for place, number in enumerate(numbers) if counts[number] == 1]

    def _matched(
        self, keys: pa.RecordBatch, found: pa.RecordBatch
    ) -> tuple[pa.RecordBatch, list[int]]:
        """Returns rows of the system that have one of the keys, and the index of their keys."""
        found = found.rename_columns(self.lookup.rows.names)
        numbers = {key: number for number, key in enumerate(_tuples(keys, keys.schema.names))}
        index = [numbers.get(key) for key in _tuples(found, keys.schema.names)]
        kept = [place for place, number in enumerate(index) if number is not None]
        return found.take(pa.array(kept, pa.int64())), [n for n in index if n is not None]


def _tuples(rows: pa.RecordBatch, names: Sequence[str]) -> list[Key]:
    return list(zip(*(rows.column(name).to_pylist() for name in names), strict=True))


class OpenTables:
    """The lookup tables that this process has opened. A forked process starts without any."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], tuple[str, OpenTable]] = {}
        self._pid = os.getpid()

    def get(self, lookup: KeyLookup) -> OpenTable:
        """Returns the open table of a lookup. That of another run is closed."""
        if self._pid != os.getpid():
            self._pid, self._open = os.getpid(), {}
        place = (lookup.spool.pipeline, lookup.spool.node)
        identity = lookup.run_id + hashlib.sha1(pickle.dumps(lookup.source)).hexdigest()
        kept, table = self._open.get(place, ("", None))
        if table is None or kept != identity:
            if table is not None:
                table.close()
            table = OpenTable(lookup)
            self._open[place] = identity, table
        return table


_TABLES = OpenTables()

"""Streams through the tasks of the transform `handlers`, divided at random, without Spark."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

from penstock.core.errors import RecordError
from penstock.handlers.metadata import Role, with_group
from penstock.handlers.roles import Roles
from penstock.transforms.group_state import BucketTask, Pack, _Unpack
from penstock.transforms.handlers.chain import Chain
from penstock.transforms.handlers.config import HandlersConfig
from penstock.transforms.handlers.transform import _INPUT, bucket_handler

Rows = list[dict[str, Any]]


class State:
    """The state of a bucket, as Spark keeps it."""

    def __init__(self) -> None:
        self.value: tuple[bytes] | None = None

    @property
    def exists(self) -> bool:
        return self.value is not None

    @property
    def get(self) -> tuple[bytes]:
        assert self.value is not None
        return self.value

    def update(self, value: tuple[bytes]) -> None:
        self.value = value


class HandlerStream:
    """A run of the transform. Each batch starts from the stored state, as after a restart."""

    def __init__(self, options: dict[str, Any], schema: pa.Schema, inputs: int = 1) -> None:
        self.config = HandlersConfig.model_validate(options)
        self.chain = Chain(self.config.handlers, tuple(self.config.batch))
        tags = dict.fromkeys(self.config.tags, Role.TAG)
        columns = {name: tags.get(name, Role.FIELD) for name in schema.names if name != _INPUT}
        config = self.config
        self.roles = Roles(config.time, config.measurement, columns, self.chain.units)
        known = pa.schema([field for field in schema if field.name != _INPUT])
        grouped = with_group(self.roles.schema(known), dict.fromkeys(self.config.by))
        self.schema: pa.Schema = self.chain.output(grouped)
        self.rejected: list[tuple[dict[str, Any], str]] = []
        by = tuple(self.config.by)
        create = partial(bucket_handler, self.chain, by, inputs)
        self._task = BucketTask(create, self.roles, self._reject)
        self._by = by if inputs == 1 else ()
        self._states: dict[int, State] = {}

    def _reject(self, part: str, rows: Sequence[tuple[pa.RecordBatch, RecordError]]) -> None:
        self.rejected += [
            (row, str(error.code)) for batch, error in rows for row in batch.to_pylist()
        ]

    def batch(self, partitions: Sequence[Sequence[pa.RecordBatch]]) -> Rows:
        """Returns the output of one batch, whose partitions have batches of Arrow."""
        packed = [
            table.to_pandas().assign(place=lambda t, n=number: t["place"] + n * 2**32)
            for number, batches in enumerate(partitions)
            if (table := pa.Table.from_batches([*self._packed(batches)]))
        ]
        rows: Rows = []
        for bucket, part in pd.concat(packed).groupby("bucket") if packed else ():
            state = self._states.setdefault(bucket, State())
            for output in self._task.advance((bucket,), iter([part]), state):  # type: ignore[arg-type]
                found = pa.RecordBatch.from_pandas(output, preserve_index=False)
                for batch in _Unpack(self.schema)(iter([found])):
                    rows += batch.to_pylist()
        return rows

    def _packed(self, batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([("bucket", pa.int32()), ("place", pa.int64()), ("rows", pa.binary())])
        yield pa.RecordBatch.from_pylist([], schema=schema)
        yield from (each.cast(schema) for each in Pack(self._by)(iter(batches)))


def divide(rows: pa.RecordBatch, rng: random.Random) -> list[list[list[pa.RecordBatch]]]:
    """Returns batches of partitions of batches of Arrow, in the order of the rows."""
    return [
        [list(parts(partition, rng, 2)) for partition in parts(batch, rng, 3)]
        for batch in parts(rows, rng, rng.choice([1, 3, 12]))
    ]


def parts(rows: pa.RecordBatch, rng: random.Random, most: int) -> Iterator[pa.RecordBatch]:
    """Yields parts of rows, of which some may be empty."""
    count = rng.randint(1, most)
    ends = sorted(rng.randint(0, rows.num_rows) for _ in range(count - 1))
    for start, end in zip([0, *ends], [*ends, rows.num_rows], strict=True):
        yield rows.slice(start, end - start)

"""Buckets of keys of a state: the unit of parallelism, of which there are as many as partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.engine.updating.files import read_rows, write_rows
from penstock.engine.updating.rows import HASH_1, HASH_2, KEY, SIDE, WEIGHT
from penstock.engine.updating.versions import (
    BUCKETS,
    CHANGES,
    SNAPSHOT,
    Chain,
    OperatorStateDirectory,
    StateVersion,
)

_IDENTITY = (KEY, HASH_1, HASH_2, SIDE)


def buckets_of(session: SparkSession) -> int:
    """Returns the number of buckets of a state: that of the partitions, at least `BUCKETS`."""
    return max(int(session.conf.get("spark.sql.shuffle.partitions") or BUCKETS), BUCKETS)


def partitions_of(session: SparkSession, buckets: int) -> int:
    """Returns the number of partitions in which the changes of these buckets are computed."""
    return min(int(session.conf.get("spark.sql.shuffle.partitions") or buckets), buckets)


def rebucket(directory: OperatorStateDirectory, version: StateVersion, number: int) -> StateVersion:
    """Writes the rows of a state to `number` buckets, durably, and returns the new state.

    Raises StateError if a file of the state is damaged.
    """
    if version.buckets == number:
        return version
    attempt = f"{version.batch}-{uuid4().hex[:8]}"
    chains = {
        operator: _rebucket_operator(directory.path, f"{operator}/{attempt}", buckets, number)
        for operator, buckets in version.chains.items()
    }
    version = replace(version, buckets=number, chains=chains)
    if not version.is_new:
        directory.save(version)
    return version


def _rebucket_operator(
    directory: Path, attempt: str, chains: Mapping[int, Chain], number: int
) -> dict[int, Chain]:
    """Writes the rows of the buckets of an operator to the files of `number` buckets."""
    rebucketed: dict[int, Chain] = {}
    for bucket, chain in chains.items():
        tables = [read_rows(directory / file.path, file.size) for file in chain]
        targets = [table.column(KEY).to_numpy() % number for table in tables]
        for target in np.unique(np.concatenate(targets)).tolist():
            parts = [
                table.filter(pa.array(chosen == target))
                for table, chosen in zip(tables, targets, strict=True)
            ]
            known = rebucketed.get(target, ())
            before = known[-1].rows if known else 0
            for index, part in enumerate(parts):
                is_snapshot = chain[index].is_snapshot and not known
                kind = SNAPSHOT if is_snapshot else CHANGES
                path = f"{attempt}/{target}-{bucket}-{index}.{kind}.arrow"
                rows = before + _different_rows(parts[: index + 1])
                known = (*known, write_rows(directory, path, part, rows))
            rebucketed[target] = known
    return rebucketed


def _different_rows(parts: Sequence[pa.Table]) -> int:
    """Returns the number of rows whose weights have another sum than 0."""
    names = [name for name in _IDENTITY if name in parts[0].schema.names]
    rows = pa.concat_tables([part.select([*names, WEIGHT]) for part in parts])
    weights = rows.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
    return int(np.count_nonzero(weights.column(f"{WEIGHT}_sum").to_numpy()))

"""Hashes of rows and of keys."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql.functions import lit, xxhash64

_SEED = 7


def hashes(values: Sequence[Column]) -> tuple[Column, Column]:
    """Returns two independent hashes of a row.

    Spark's hash omits nulls: without their positions, (null, 1) and (1, null) have the same hash.
    """
    identity = [*values, *(value.isNull() for value in values)]
    return xxhash64(*(identity or [lit(0)])), xxhash64(lit(_SEED), *identity)

"""Options of the hybrid source."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from penstock.sdk import Config


class Handover(Config):
    """Columns of the bounded phases with the position of each record in the last phase."""

    partition: str
    """The column with the partition of a record, an integer."""
    offset: str
    """The column with the offset of a record, an integer."""


class HybridSourceConfig(Config):
    phases: list[dict[str, Any]] = Field(min_length=2)
    """The sources in the order in which they are read, each with its `type`, its options and its
    `format`. All but the last must end; a source that receives messages or changes never ends."""
    handover: Handover | None = None
    """The position at which the last phase starts: after the last record of each partition in the
    bounded phases. The last phase must be `kafka` with one topic.

    Partitions without a record in the bounded phases are read from their beginning. By default the
    last phase starts where its own options say.
    """
    start_offsets: dict[str, Any] | None = None
    """A source that ends, in place of `handover`. Its columns `partition` and `offset` have the
    first record of a partition that the last phase reads. Without rows the last phase starts where
    its own options say."""
    columns_of: Literal["all", "last"] = "all"
    """The columns without `schema`: those of `all` phases, which must have the same names, with
    types that hold the values of all; or those of the `last` phase, whose types the other phases
    then have."""
    skip_last: bool = False
    """Ends after the bounded phases, and does not read the last one, which must keep its
    records."""

    @model_validator(mode="after")
    def _check_start(self) -> Self:
        if self.handover is not None and self.start_offsets is not None:
            raise ValueError("handover excludes start_offsets")
        return self

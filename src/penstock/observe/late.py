"""Late rows of a query, by the node with their watermark."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class LateCount:
    """The late rows of a query in this run.

    `nodes` has the rows of each source or transform with a watermark. Without `exact` only Spark
    counts: `total` is then its count, in which rows of one group and partition of a batch are one.
    """

    exact: bool
    nodes: dict[str, int] = field(default_factory=dict)
    by_spark: int = 0

    @property
    def total(self) -> int:
        """The late rows of all nodes."""
        return sum(self.nodes.values()) if self.exact else self.by_spark

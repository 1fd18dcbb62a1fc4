"""The plugin that the example of \"Building data flows\" names."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from penstock.sdk import Capability, Config, ReplayableSource, plugin

NOW = dt.datetime.now(dt.UTC)


class OrdersConfig(Config):
    poll_interval_ms: str = "1000"


@plugin("acme_api.orders_source")
class Orders(ReplayableSource[OrdersConfig]):
    """Yields three orders, one of them of yesterday."""

    capabilities = frozenset({Capability.REPLAY, Capability.BOUNDED, Capability.ROWS})

    def infer_schema(self):
        time = pa.timestamp("us", tz="UTC")
        return pa.schema(
            {
                "id": pa.int64(),
                "amount": pa.int64(),
                "created_at": time,
                "risk_score": pa.string(),
                "_gs_op": pa.string(),
            }
        )

    def is_bounded(self):
        return True

    def initial_offset(self):
        return {"rows": 0}

    def latest_offset(self, start):
        return {"rows": 3}

    def partitions(self, start, end):
        return [None] if start != end else []

    def read(self, partition, read):
        days = (0, 0, 1)
        rows = [
            {
                "id": number,
                "amount": 600 * number,
                "risk_score": None,
                "_gs_op": "i",
                "created_at": NOW - dt.timedelta(days=day),
            }
            for number, day in enumerate(days, 1)
        ]
        found = pa.RecordBatch.from_pylist(rows, schema=self.infer_schema())
        yield found.select(self.columns.names)

"""Tables of ClickHouse databases."""

from penstock.connectors.clickhouse.sink import ClickhouseSink
from penstock.connectors.clickhouse.source import ClickhouseSource

__all__ = ["ClickhouseSink", "ClickhouseSource"]

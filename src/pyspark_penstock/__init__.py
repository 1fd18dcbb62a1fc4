"""The discovery of Penstock by PySpark: the format `penstock` of `spark.read` and `readStream`."""

from penstock.engine.sources.datasource import PenstockDataSource as DefaultSource

__all__ = ["DefaultSource"]

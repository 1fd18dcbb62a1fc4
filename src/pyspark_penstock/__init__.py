"""How PySpark finds Penstock: the formats `penstock` of `spark.read` and `spark.readStream`."""

from penstock.engine.datasource import PenstockDataSource as DefaultSource

__all__ = ["DefaultSource"]

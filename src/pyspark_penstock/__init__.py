"""How PySpark finds Penstock: `spark.read.format("penstock")` and `spark.readStream.format("penstock")`."""

from penstock.engine.datasource import PenstockDataSource as DefaultSource

__all__ = ["DefaultSource"]

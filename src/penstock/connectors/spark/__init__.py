"""Formats of Spark, which its DataFrames read and write."""

from penstock.connectors.spark.sink import SparkSink
from penstock.connectors.spark.source import SparkSource

__all__ = ["SparkSink", "SparkSource"]

"""The version of Penstock, and that of Spark for which it is made."""

__version__ = "0.1.0"
SPARK_VERSION = "4.3"
"""The supported version of Spark: runs use interfaces that differ in others."""

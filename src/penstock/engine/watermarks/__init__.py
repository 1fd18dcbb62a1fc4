"""Watermarks of a query where they do not follow Spark's: partitions, idle sources, bounds.

Imported by `build`, `batch` and `start`, and from outside by `runtime`. Start at `watermark.py`.
"""

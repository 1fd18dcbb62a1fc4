"""Late rows: rows behind the watermark, which Spark drops. They are counted and kept.

Imported by `watermarks`, `build`, `failures` and `batch`. Start at `late_rows.py`.
"""

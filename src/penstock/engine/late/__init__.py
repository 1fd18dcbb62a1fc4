"""Late rows: rows behind the watermark, which Spark drops. They are counted and kept.

Imported by `watermarks`, `build`, `failures`, `batch`, `start` and `checks`, and from outside by
`runtime`. Start at `late_rows.py`.
"""

"""History of metrics: samples of all pipelines, kept for 30 days with less detail over time.

`sampling.py` computes the series of a snapshot, `recorder.py` takes samples, and `store.py` keeps
them in a file of its own, by the levels of `levels.py`.
"""

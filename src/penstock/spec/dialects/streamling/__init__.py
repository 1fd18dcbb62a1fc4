"""Streamling: its files as pipelines. `front_end.py` is the file to start at."""

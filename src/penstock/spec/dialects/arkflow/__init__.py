"""ArkFlow: its files (`streams:`) as pipelines. `front_end.py` is the file to start at."""

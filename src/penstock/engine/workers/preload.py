"""Modules of workers, imported once before workers are forked."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
import random
import sys

from penstock.core.deferred_pandas import defer_pandas

PANDAS = ("pandas", "pyarrow.pandas_compat")
PYTHON = (
    "numpy",
    "pyarrow",
    "pyarrow.compute",
    "pyarrow.json",
    "pyarrow.csv",
    "arro3.core",
    "pyspark.sql",
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.datasource",
    "pyspark.sql.functions",
    "pyspark.sql.pandas.functions",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "pyspark.sql.streaming.stateful_processor_api_client",
)
ALL_OF = ("pyspark.sql.worker",)
PENSTOCK = (
    "penstock.engine.sources.datasource",
    "penstock.engine.sinks.sink",
    "penstock.engine.tasks.function",
    "penstock.sdk",
    "penstock.formats",
    "penstock.formats.csv",
    "penstock.formats.raw",
    "penstock.formats.text",
    "penstock.connectors.files",
    "penstock.connectors.generate",
    "penstock.connectors.kafka",
    "penstock.connectors.memory",
    "penstock.transforms.python",
)
SINGLE_THREADED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Settings for libraries that start threads on import. A fork copies one thread only."""
_GARBAGE = 50_000

_is_done = False


def preload(*, pandas: bool = True) -> None:
    """Imports the modules of workers, and prepares this process for forks.

    Without `pandas` a worker imports pandas when a function of the pipeline or of Spark uses it.
    A module that fails is left to the worker. Does nothing in a process that has done so, or in a
    fork of it.
    """
    global _is_done
    if _is_done:
        return
    if not pandas:
        defer_pandas()
    names = [*(PANDAS if pandas else ()), *PYTHON, *PENSTOCK]
    for package in ALL_OF:
        with contextlib.suppress(Exception):
            modules = pkgutil.iter_modules(importlib.import_module(package).__path__, package + ".")
            names += [module.name for module in modules]
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    os.register_at_fork(after_in_child=_reseed)
    gc.collect()
    gc.freeze()
    # Batches have 10,000 records. Garbage collection every 700 objects costs 10 % of the time.
    gc.set_threshold(_GARBAGE, 20, 20)
    _is_done = True


def _reseed() -> None:
    """Seeds the random number generators of a fork, so that no two workers share a sequence."""
    random.seed()
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed()

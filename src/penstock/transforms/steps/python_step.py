"""Python functions from a batch to batches."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError, Rejected
from penstock.core.exits import exception_text, exits_as_exceptions
from penstock.core.python_permission import require_python
from penstock.transforms.python_code import check_code, load_code
from penstock.transforms.steps.config import Step
from penstock.transforms.steps.paths import locate


class PythonFunction:
    """The function of a step `python`: from a RecordBatch to RecordBatches."""

    def __init__(self, config: Step, base: Path, node: str) -> None:
        self.config, self._base, self._node = config, base, node
        self._function: Any = None

    def check(self) -> None:
        """Checks the code. Raises OptionError, and PlanError if Python is not permitted."""
        require_python("Python code of a step")
        if self.config.code is not None:
            check_code(self.config.code, str(self.config.function))

    def call(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Returns the batches of the function. Raises Rejected."""
        try:
            with exits_as_exceptions(KeyboardInterrupt):
                return _batches(self._load()(batch))
        except PlanError:
            raise
        except Exception as error:
            raise Rejected(exception_text(error), code="function-failed") from error

    def _load(self) -> Any:
        if self._function is None:
            for path in [".", str(self._base), *self.config.python_path]:
                resolved = str(locate(path, self._base))
                if resolved not in sys.path:
                    sys.path.insert(0, resolved)
            if self.config.code is not None:
                self._function = load_code(self.config.code, str(self.config.function), self._node)
            else:
                module = importlib.import_module(str(self.config.module))
                self._function = getattr(module, str(self.config.function))
        return self._function


def _batches(result: Any) -> list[pa.RecordBatch]:
    """Returns the result of a function, a batch or a list of batches, as a list."""
    if result is None:
        return []
    if isinstance(result, pa.Table):
        result = result.combine_chunks().to_batches()
    items: Sequence[Any] = [result] if isinstance(result, pa.RecordBatch) else result
    for item in items:
        if not isinstance(item, pa.RecordBatch):
            raise TypeError(f"expected a list of RecordBatch, found {type(item).__name__}")
    return list(items)

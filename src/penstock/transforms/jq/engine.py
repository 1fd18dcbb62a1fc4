"""Filters of jq, in a sandbox process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jq

from penstock.transforms.sandbox.child import Batch, CodeError, Limits
from penstock.transforms.sandbox.collector import run_rows

_PLACE = re.compile(
    r"^jq: error: (.*?) at <top-level>(?:, line (\d+)(?:, column (\d+))?)?", re.DOTALL
)


class JqEngine:
    """A compiled filter."""

    def load(self, code: bytes, options: dict[str, Any], limits: Limits) -> None:
        """Compiles the filter. Raises CodeError."""
        try:
            self._filter = jq.compile(code.decode())
        except ValueError as error:
            raise _compile_error(str(error)) from None

    def run(self, batch: Batch) -> bytes:
        """Returns the results of a batch."""
        return run_rows(batch, self._results)

    def _results(self, text: str) -> Iterator[Any]:
        try:
            yield from self._filter.input_text(text)
        except ValueError as error:
            raise CodeError(str(error)) from None


def _compile_error(text: str) -> CodeError:
    found = _PLACE.search(text)
    if found is None:
        return CodeError(text.removeprefix("jq: error: ").splitlines()[0])
    return CodeError(found[1], int(found[2] or 0), int(found[3] or 0))

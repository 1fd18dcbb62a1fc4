"""Programs in VRL, in a sandbox process."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pyvrl

from penstock.transforms.sandbox.child import Batch, CodeError, Limits
from penstock.transforms.sandbox.collector import run_rows

_COMPILE_ERROR = re.compile(r"error\[E\d+\]: ([^\n]*)\n\s*┌─ :(\d+):(\d+)")
_NOTE = re.compile(r"\^+[\s│]*([^\n]+)")
_RUNTIME_PLACE = re.compile(r" at \((\d+):\d+\)")
_FAILURE = "remap failure: "
_ABORTED = "aborted"


class VrlEngine:
    """A compiled program. Its result is the event after the last expression, as in Vector."""

    def load(self, code: bytes, options: dict[str, Any], limits: Limits) -> None:
        """Compiles the program. Raises CodeError."""
        self._code = code.decode()
        compile_program(self._code)  # has the errors of a program that the dot would continue
        self._program = compile_program(f"{self._code}\n.")

    def run(self, batch: Batch) -> bytes:
        """Returns the results of a batch."""
        return run_rows(batch, self._results, _plain)

    def _results(self, text: str) -> Iterator[Any]:
        try:
            yield self._program.remap(json.loads(text))
        except ValueError as error:
            message = str(error).removeprefix(_FAILURE)
            if message == _ABORTED:
                return
            place = _RUNTIME_PLACE.search(message)
            line, column = self._position(int(place[1])) if place else (0, 0)
            raise CodeError(_RUNTIME_PLACE.sub("", message), line, column) from None

    def _position(self, offset: int) -> tuple[int, int]:
        before = self._code.encode()[:offset].decode(errors="ignore")
        return before.count("\n") + 1, len(before) - before.rfind("\n")


def compile_program(code: str) -> Any:
    """Returns a program. Raises CodeError."""
    try:
        return pyvrl.Transform(code)
    except ValueError as error:
        found = _COMPILE_ERROR.search(str(error))
        if found is None:
            raise CodeError(str(error).strip().splitlines()[0]) from None
        note = _NOTE.search(str(error), found.end())
        message = f"{found[1]}: {note[1]}" if note else found[1]
        raise CodeError(message, int(found[2]), int(found[3])) from None


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    raise CodeError(f"{type(value).__name__} is not a value of a column")

"""Scripts in V8, in a sandbox process."""

from __future__ import annotations

import json
import os
import re
import signal
from importlib.resources import files
from typing import Any

from py_mini_racer import (
    JSEvalException,
    JSOOMException,
    JSParseException,
    JSTimeoutException,
    MiniRacer,
)

from penstock.transforms.sandbox.child import OUT_OF_MEMORY, Batch, CodeError, Limits

_NAME = "penstock-code"
_ERROR = re.compile(r"^[^\n]*?:(\d+): ([^\n]*)")
_FRAME = re.compile(rf"{_NAME}:(\d+):(\d+)")
_SHARE = 0.25
"""The share of the time limit after which V8 returns between two rows."""


class ScriptEngine:
    """V8 without any interface to the system."""

    def __init__(self) -> None:
        self._v8 = MiniRacer()
        driver = files("penstock.transforms.script").joinpath("driver.js").read_text()
        self._driver: Any = self._v8.eval(driver)

    def load(self, code: bytes, options: dict[str, Any], limits: Limits) -> None:
        """Runs the top level of the script. Raises CodeError."""
        self._timeout, function = limits.timeout, options["function"]
        self._v8.set_hard_memory_limit(limits.memory)
        try:
            self._v8.eval(f"{code.decode()}\n//# sourceURL={_NAME}", timeout_sec=self._timeout)
            entry = self._v8.eval(f"typeof {function} === 'function' ? {function} : null")
        except JSTimeoutException:
            raise CodeError(options["no_result"]) from None
        except (JSParseException, JSEvalException, JSOOMException) as error:
            self._exit_without_memory()
            raise _code_error(str(error)) from None
        if entry is None:
            raise CodeError(f'the code does not define a function "{function}"', 1, 1)
        self._driver["bind"](entry)
        self._no_result = options["no_result"]

    def run(self, batch: Batch) -> bytes:
        """Returns the results of a batch."""
        budget = 0 if batch.stepwise else self._timeout * _SHARE * 1000
        settings = batch.options | {"milliseconds": self._timeout * 1000}
        try:
            self._driver["begin"](batch.payload.decode(), json.dumps(settings))
            done = 0
            while done < batch.options["rows"]:
                batch.clock.start(*[done] if batch.stepwise else [])
                done = self._step(budget)
            batch.clock.start()
            result: str = self._driver["finish"]()
        except (JSOOMException, JSEvalException):
            self._exit_without_memory()
            raise
        return result.encode()

    def _exit_without_memory(self) -> None:
        """Ends the process if V8 has reached its limit, after which it runs no code."""
        if self._v8.was_hard_memory_limit_reached():
            os._exit(OUT_OF_MEMORY)

    def _step(self, budget: float) -> int:
        """Processes rows until the time `budget` in milliseconds. Returns the processed rows."""
        seconds = self._timeout * (1 + _SHARE)
        try:
            done = int(self._driver["step"](budget, timeout_sec=seconds))
            if budget == 0:
                self._driver["settle"](timeout_sec=seconds)
        except JSTimeoutException:
            done = -1
        if done < 0:
            done = int(self._driver["skip"](self._no_result))
        if done < 0:
            # The code of a promise, which a row has left behind: row by row, the row is found.
            os.kill(os.getpid(), signal.SIGALRM)
        return done


def _code_error(text: str) -> CodeError:
    """Returns the error of a text of V8: a place, a message, a line of the code and a mark."""
    head = _ERROR.search(text)
    message = head[2] if head else text.splitlines()[0]
    frame = _FRAME.search(text.partition("\n")[2])
    if frame:
        return CodeError(message, int(frame[1]), int(frame[2]))
    lines = text.splitlines()
    marks = [index for index, line in enumerate(lines) if line.strip() and not line.strip(" \t^")]
    column = lines[marks[0]].index("^") + 1 if marks else 1
    return CodeError(message, int(head[1]) if head else 0, column)

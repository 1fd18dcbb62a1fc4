"""A program that does one piece of work after another, and the costs of each."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from measure import PR_SET_CHILD_SUBREAPER, Failed
from running import Running
from soak import size

QUIET = 0.5
"""Seconds after a piece of work that still belong to it."""
SAMPLE = 0.1


@dataclass(frozen=True)
class Work:
    """The costs of a piece of work. `state_mb` is the most that the directory of state held."""

    seconds: float
    cpu: float
    state_mb: float


class Serving(Running):
    """Runs a command that answers each line of its input with a line of JSON.

    What its processes leave behind becomes its child, so its CPU seconds are complete.
    """

    def __init__(self, command: Sequence[str], directory: Path, env: Mapping[str, str]) -> None:
        super().__init__(command, directory, env)
        self._errors = directory / "errors"

    def __enter__(self) -> Self:
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                self._command, cwd=self._directory, env=self._env, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=errors, start_new_session=True, text=True,
                preexec_fn=_adopt if sys.platform == "linux" else None,
            )  # fmt: skip
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        super().__exit__(*error)
        self._process.stdout.close()

    def work(self, line: str, state: Path) -> Work:
        """Sends a line and waits for the answer. Raises Failed."""
        before = self.cpu()
        with Largest(state) as largest:
            answer = self._ask(line)
        time.sleep(QUIET)
        if "error" in answer:
            raise Failed(str(answer["error"]))
        return Work(answer["seconds"], self.cpu() - before, largest.mb)

    def _ask(self, line: str) -> dict[str, float]:
        assert self._process.stdin and self._process.stdout
        print(line, file=self._process.stdin, flush=True)
        while text := self._process.stdout.readline():
            with suppress(ValueError):
                answer = json.loads(text)
                if isinstance(answer, dict):
                    return answer
        raise Failed(self._errors.read_text(errors="replace")[-4000:])


class Largest:
    """The largest size of a directory while a block runs, in MB."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._ended, self.mb = directory, threading.Event(), 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE):
            self.mb = max(self.mb, size(self._directory))


def _adopt() -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

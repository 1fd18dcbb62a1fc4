"""Listener of a tap, outside of the run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from penstock.core.errors import PlanError, StateError
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.files import writing
from penstock.runtime.taps.files import TapDirectory, TapRequest

POLL_SECONDS = 0.2
LIFE_SECONDS = 1.0
"""The time between two signs of life, and between two looks at the run."""


class Tap:
    """A tap on a node of a running pipeline, until `close`.

    Raises StateError if the pipeline does not run on this machine.
    """

    def __init__(self, state: StateDirectory, node: str, rows: int) -> None:
        self._state, self._node = state, node
        self._last = time.monotonic()
        self._require_run()
        with writing(state.root):
            self._directory = TapDirectory.create(state.root, TapRequest(node, rows))

    def poll(self) -> list[dict[str, Any]]:
        """Returns the answers since the last call, and gives a sign of life.

        An answer has `opened`, or `columns` and `rows` of a batch, or `missed` with the reason for
        which a batch has none. Raises PlanError if the node has no tap, and StateError at the end
        of the run.
        """
        if time.monotonic() - self._last > LIFE_SECONDS:
            self._last = time.monotonic()
            self._require_run()
            with writing(self._directory.path):
                self._directory.touch()
        answers = self._directory.take()
        for answer in answers:
            if "error" in answer:
                raise PlanError(**answer["error"])
        return answers

    def follow(self, seconds: float) -> Iterator[dict[str, Any]]:
        """Yields answers as they arrive, for some seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            yield from self.poll()
            time.sleep(POLL_SECONDS)

    def close(self) -> None:
        """Ends the tap."""
        self._directory.remove()

    def _require_run(self) -> None:
        if self._state.is_elsewhere():
            raise StateError(
                "the pipeline runs on another machine, whose rows cannot be tapped from here",
                code="runs-elsewhere", hint="Run penstock tap on the machine of the run.",
            )  # fmt: skip
        if self._state.owner() is None:
            raise StateError(
                "the pipeline does not run", code="not-running",
                hint="Start the pipeline, or look at rows of its sources with penstock inspect.",
            )  # fmt: skip

"""The pipelines that tools work on, of a directory or of a server."""

from __future__ import annotations

from typing import Any, Protocol

Facts = dict[str, Any]


class Pipelines(Protocol):
    """Pipelines by name. All methods raise PenstockError."""

    def all(self) -> list[Facts]:
        """Returns the pipelines, each with at least its name and its file."""
        ...

    def read(self, name: str) -> Facts:
        """Returns the text of a pipeline."""
        ...

    def check(self, name: str, text: str | None, *, columns: bool) -> Facts:
        """Returns the result of a check, of the pipeline or of another text for it.

        With `columns` Spark infers the columns of every node.
        """
        ...

    def explain(self, name: str) -> Facts:
        """Returns the nodes and queries of a pipeline, with state and guarantees."""
        ...

    def dead_letters(self, name: str, node: str | None, code: str | None, limit: int) -> Facts:
        """Returns the newest dead letters of a selection, and their numbers by node and code."""
        ...

    def write(self, name: str, text: str, note: str) -> Facts:
        """Writes a valid text as the pipeline of a name."""
        ...

    def replay(self, name: str, ids: list[str] | None) -> Facts:
        """Replays dead letters by ID; None is all of them."""
        ...

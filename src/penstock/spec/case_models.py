"""The model of the test cases of a pipeline."""

from __future__ import annotations

from typing import Any, Literal

from penstock.spec.model_types import StrictModel

Rows = list[dict[str, Any]]


class Given(StrictModel):
    """Input of a source in a test: one batch, or several."""

    rows: Rows | None = None
    """One batch of rows."""
    payloads: list[str | dict[Literal["hex", "base64"], str]] | None = None
    """One batch of payloads, to test decoding. `{hex: ...}` and `{base64: ...}` are bytes."""
    batches: list[Rows] | None = None
    """Several batches of rows, in order."""


class ExpectedRows(StrictModel):
    """Expected rows of a node: the table at the end, the changes that lead to it, or both."""

    table: Rows | None = None
    """The exact rows at the end: the last row of each primary key, without deleted rows."""
    changes: Rows | None = None
    """The exact rows in the order of writing. The operation column has `i`, `ub`, `u` or `d`."""


class ExpectedDeadLetter(StrictModel):
    """An expected dead letter. Absent keys match anything."""

    node: str | None = None
    """The failing node."""
    code: str | None = None
    """The error code."""
    message: str | None = None
    """A part of the error message."""
    payload: str | None = None
    """A part of the payload."""


class ExpectedError(StrictModel):
    """The expected error of a pipeline."""

    code: str | None = None
    """The error code."""
    message: str | None = None
    """A part of the error message."""


class TestCase(StrictModel):
    """Input rows of sources and expected rows of nodes and sinks."""

    __test__ = False

    name: str
    """The name of the case."""
    given: dict[str, Given | Rows]
    """The input of each source: rows, or a map with `rows`, `payloads` or `batches`."""
    expect: dict[str, ExpectedRows | Rows] = {}
    """The exact rows of each node or sink, or a map with `table` or `changes`. Rows without a map
    are changes. Absent columns match anything."""
    ordered: bool = False
    """Whether the order of rows is compared."""
    dead_letters: list[ExpectedDeadLetter] | None = None
    """The exact dead letters, in any order. Defaults to none."""
    error: ExpectedError | None = None
    """The error that the pipeline must fail with."""

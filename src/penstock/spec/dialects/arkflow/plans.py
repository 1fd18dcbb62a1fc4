"""Parts of a pipeline that the components of a stream become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.spec.dialects.options.trees import Tree

VALUE = "__value__"
RAW: Mapping[str, Any] = {"format": {"type": "raw"}, "schema": {VALUE: "BINARY"}}
"""The format and the columns of a source of payloads."""


@dataclass
class InputPlan:
    """An input: the options of its source, and of its rows in the transform `steps`.

    `metadata` are metadata columns of the source; `columns` has the columns of the source that a
    batch needs, and `types` those of columns that are no messages. `is_bounded` is true if the
    input ends.
    """

    source: dict[str, Tree]
    rows: dict[str, Tree] = field(default_factory=dict)
    columns: Sequence[str] = (VALUE,)
    types: Mapping[str, str] = field(default_factory=dict)
    is_bounded: bool = False
    name: str = ""


@dataclass
class OutputPlan:
    """An output: the options of its sink, and of the rows that it gets.

    With `infer` the columns are those of the first batch of the inputs.

    `columns` are columns beside the payload, such as a topic, by name; each is the map of an
    expression. `rows` and `table` are the columns that are written in place of a payload.
    """

    sink: dict[str, Tree]
    columns: dict[str, Tree] = field(default_factory=dict)
    encode: Tree = None
    value: str | None = None
    rows: Tree = None
    table: Tree = None
    is_payload: bool = True
    infer: bool = False

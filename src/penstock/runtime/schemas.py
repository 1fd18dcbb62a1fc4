"""Schemas that nobody declared: inferred from a sample at the first start, then pinned."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.core.errors import PenstockError, PlanError
from penstock.plan.model import Node, Plan
from penstock.runtime.state import StateDirectory
from penstock.sdk import Capability
from penstock.sdk.kit.registry import RegistryFormat

FILE = "schemas.json"
SAMPLE = 1000


@dataclass(frozen=True)
class Inferred:
    """A schema that was found by looking."""

    node: str
    columns: pa.Schema


def settle(plan: Plan, state: StateDirectory | None, *, pin: bool = True) -> list[Inferred]:
    """Gives each source without columns those that are pinned, or infers and pins them.

    Raises PlanError where nothing can be inferred. Without a state directory, or without `pin`,
    nothing is written.
    """
    known: dict[str, Any] = (state.read(FILE) if state else None) or {}
    found = []
    for node in plan.of("source"):
        if node.source.columns is not None:
            continue
        if node.name in known:
            node.source.columns = _unpack(known[node.name]["arrow"])
            continue
        node.source.columns = _infer(node)
        found.append(Inferred(node.name, node.source.columns))
        known[node.name] = {
            "columns": {f.name: str(f.type) for f in node.source.columns},
            **_origin(node.source.columns),
            "arrow": base64.b64encode(node.source.columns.serialize().to_pybytes()).decode(),
        }
    if state is not None and found and pin:
        state.write(FILE, known)
    return found


def pinned(state: StateDirectory) -> dict[str, pa.Schema]:
    """The columns of the sources whose schemas are pinned."""
    return {name: _unpack(each["arrow"]) for name, each in (state.read(FILE) or {}).items()}


def _infer(node: Node) -> pa.Schema:
    source = node.source
    try:
        columns = None
        if Capability.ROWS in source.capabilities:
            columns = source.infer()
        elif source.format is not None:
            columns = source.format.infer(source.format.records(source.sample(SAMPLE)).texts)
    except PenstockError as error:
        error.where = error.where or node.where
        raise
    if columns is None or not len(columns):
        raise PlanError(
            f"{node.label} has no schema, and there is nothing to infer one from",
            code="no-schema",
            hint="declare it, as in schema: id LONG, name STRING, at TIMESTAMP",
            where=node.where,
        )
    return columns


def _origin(columns: pa.Schema) -> dict[str, Any]:
    """Which schema of a registry the columns came from, for readers of the file."""
    pin = RegistryFormat.pin(columns)
    return {"registry": {"id": pin.id, "version": pin.version}} if pin else {}


def _unpack(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))

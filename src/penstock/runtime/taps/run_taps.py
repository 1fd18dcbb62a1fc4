"""Taps of a run: requests of listeners, and rows of batches for them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.errors import PenstockError, PlanError
from penstock.core.exits import exception_text
from penstock.core.log import Log
from penstock.core.text import did_you_mean, shorten
from penstock.plan.graph import upstream
from penstock.plan.model import Plan, Query
from penstock.plan.side_outputs import observable
from penstock.runtime.state.directory import now
from penstock.runtime.taps.files import MAX_ROWS, TapDirectory, TapRequest
from penstock.sdk.columns.shown_rows import shown_table

PERIOD_SECONDS = 1.0
"""The minimum time between two batches of a query whose rows are copied."""
MAX_TAPS = 8


@dataclass
class _Tap:
    directory: TapDirectory
    request: TapRequest
    query: str
    node: str
    answers: int = 0
    skipped: int = 0


class RunTaps:
    """The taps of a run. Without one, a batch costs a look at an empty dictionary."""

    def __init__(self, plan: Plan, state: Path, log: Log) -> None:
        self._plan, self._state, self._log = plan, state, log
        self._taps: dict[Path, _Tap] = {}
        self._last: dict[str, float] = {}
        for directory in TapDirectory.all(state):
            if directory.silent():
                directory.remove()

    def poll(self) -> None:
        """Takes new requests, and ends the taps whose listeners have left."""
        with suppress(OSError):
            found = {each.path: each for each in TapDirectory.all(self._state)}
            for path in self._taps.keys() - found.keys():
                self._taps = {key: tap for key, tap in self._taps.items() if key != path}
            for path, directory in found.items():
                if directory.silent():
                    self._taps = {key: tap for key, tap in self._taps.items() if key != path}
                    directory.remove()
                elif path not in self._taps:
                    self._open(directory)

    def wanted(self, query: Query) -> Mapping[str, int]:
        """Returns the nodes whose rows are copied from the next batch, and the rows of each."""
        taps = self._taps
        if not taps:
            return {}
        if time.monotonic() - self._last.get(query.name, -inf) < PERIOD_SECONDS:
            return {}
        wanted: dict[str, int] = {}
        for tap in taps.values():
            if tap.query == query.name:
                wanted[tap.node] = max(wanted.get(tap.node, 0), min(tap.request.rows, MAX_ROWS))
        if wanted:
            self._last[query.name] = time.monotonic()
        return wanted

    def pass_rows(self, query: Query, number: int, node: str, rows: pa.Table) -> None:
        """Passes rows of a batch to the listeners of a node. A failure ends their taps."""
        for tap in [*self._taps.values()]:
            if (tap.query, tap.node) == (query.name, node):
                table = shown_table(rows.slice(0, min(tap.request.rows, MAX_ROWS)))
                self._answer(tap, {"batch": number, "query": query.name, **table})

    def miss(self, query: Query, number: int, node: str, error: Exception) -> None:
        """Passes the reason for which the rows of a batch could not be copied."""
        message = error.message if isinstance(error, PenstockError) else exception_text(error)
        for tap in [*self._taps.values()]:
            if (tap.query, tap.node) == (query.name, node):
                self._answer(tap, {"batch": number, "missed": shorten(message)})

    def _open(self, directory: TapDirectory) -> None:
        request = directory.request()
        if request is None:
            return
        tap = _Tap(directory, request, "", "")
        try:
            tap.query, tap.node = self._find(request.node)
            if len([each for each in self._taps.values() if each.query]) >= MAX_TAPS:
                raise PlanError(
                    f"the run has {MAX_TAPS} taps", code="too-many-taps", hint="End another one."
                )
        except PlanError as error:
            facts = {"code": error.code, "message": error.message, "hint": error.hint}
            self._answer(tap, {"error": facts})
        else:
            self._log.info("tap opened", node=request.node)
            self._answer(tap, {"opened": request.node})
        self._taps = {**self._taps, directory.path: tap}

    def _find(self, name: str) -> tuple[str, str]:
        """Returns the query and the node of its batches with the rows of a node.

        Raises PlanError for an unknown node, and one that is computed within a stream.
        """
        nodes = self._plan.nodes
        if name not in nodes:
            raise PlanError(
                f'the run has no node "{name}"', code="unknown-node", hint=did_you_mean(name, nodes)
            )
        wanted = nodes[name].inputs[0] if nodes[name].kind == "sink" else name
        for query in self._plan.queries:
            of_sink = nodes[name].kind != "sink" or name in query.sinks
            if of_sink and wanted in observable(query):
                return query.name, wanted
        roots = self._roots_after(wanted)
        raise PlanError(
            f'the rows of "{name}" are in no batch: they are computed within the stream of '
            f"{', '.join(roots)}",
            code="no-tap",
            hint=f'Tap {" or ".join(roots)}, the next node whose rows are in a batch, or preview '
            f'"{name}" in the editor.',
        )  # fmt: skip

    def _roots_after(self, node: str) -> list[str]:
        """Returns the roots of queries in whose stream a node is computed."""
        above = {
            query.root: upstream([query.root], self._plan.nodes) for query in self._plan.queries
        }
        after = [root for root, names in above.items() if node in names]
        return [root for root in after if not any(o != root and o in above[root] for o in after)]

    def _answer(self, tap: _Tap, content: Mapping[str, Any]) -> None:
        """Writes an answer; one without a place or that cannot be written is counted."""
        answer = {**content, "time": now(), "skipped": tap.skipped}
        try:
            written = tap.directory.answer(tap.answers + 1, answer)
        except OSError:
            written = False
        tap.answers += written
        tap.skipped += not written

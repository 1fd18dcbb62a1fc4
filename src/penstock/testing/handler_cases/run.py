"""Runs of cases: the status and the output batches of each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.core.errors import PenstockError
from penstock.handlers.errors import HandlerError
from penstock.testing.handler_cases.case_file import (
    CaseFile,
    HandlerCase,
    InvalidCase,
    Item,
    Reference,
)
from penstock.testing.handler_cases.columns import write_batch
from penstock.testing.handler_cases.parsers import CreateParser

Batches = list[pa.RecordBatch]
Rejected = list[dict[str, Any]]
Handle = Callable[[Sequence[Any]], tuple[Batches, Rejected]]
"""A function from the items of a call to its output, and the rows and lines that are left out."""


@dataclass
class _Run:
    """The results of one case."""

    status: list[str] = field(default_factory=list)
    batches: list[tuple[str, pa.RecordBatch]] = field(default_factory=list)
    rejected: list[dict[str, Any]] = field(default_factory=list)

    def results(self) -> dict[str, Any]:
        """Returns the keys of the results: status, exit, outputs, and rejected if not empty."""
        outputs = [write_batch(batch, number) for number, batch in self.batches]
        found = {"status": self.status, "exit": 0, "outputs": outputs}
        return {**found, "rejected": self.rejected} if self.rejected else found


def run_cases(file: CaseFile) -> tuple[dict[str, Any], list[PenstockError]]:
    """Returns the document of a file with the results of its cases, and the errors of others."""
    outputs: dict[str, Batches] = {}
    documents, errors = list[Any](), list[PenstockError]()
    for case in file.cases:
        errors += case.errors
        if isinstance(case, InvalidCase):
            documents.append(_invalid(case))
            continue
        run = _run(case, outputs)
        outputs[case.title] = [batch for _, batch in run.batches]
        inputs = {k: v for k, v in case.document.items() if k not in ("outputs", "rejected")}
        documents.append({**inputs, **run.results()})
    note = {} if file.note is None else {"note": file.note}
    return {**note, "cases": documents}, errors


def _invalid(case: InvalidCase) -> dict[str, Any]:
    document = dict(case.document) if isinstance(case.document, dict) else {}
    return {**document, "status": [f"ERROR {case.errors[-1].message}"], "exit": 2, "outputs": []}


def _run(case: HandlerCase, outputs: Mapping[str, Batches]) -> _Run:
    """Returns the results of a case. The error of an option is the error of each call."""
    run = _Run()
    try:
        handle = _parsing(case.parser) if case.parser else _handling(case, outputs)
    except HandlerError as error:
        run.status = [f"call {number} ERROR {error}" for number in range(len(case.calls))]
        return run
    for number, call in enumerate(case.calls):
        try:
            batches, rejected = handle(call)
        except (HandlerError, pa.ArrowException) as error:
            kind = "" if isinstance(error, HandlerError) else "Invalid: "
            run.status.append(f"call {number} ERROR {kind}{error}")
            continue
        run.status.append(f"call {number} OK batches={len(batches)}")
        run.batches += [(f"{number}.{index}", batch) for index, batch in enumerate(batches)]
        run.rejected += [{"call": number, **each} for each in rejected]
    return run


def _parsing(create: CreateParser) -> Handle:
    parser = create()

    def parse(call: Sequence[Any]) -> tuple[Batches, Rejected]:
        batches, rejected = Batches(), Rejected()
        for text in call:
            batch, errors = parser.parse(text)
            batches += [] if batch is None else [batch]
            rejected += [{"line": line, "error": error.message} for line, error in errors]
        return batches, rejected

    return parse


def _handling(case: HandlerCase, outputs: Mapping[str, Batches]) -> Handle:
    assert case.create is not None
    handler = case.create()

    def handle(call: Sequence[Item]) -> tuple[Batches, Rejected]:
        batches = Batches()
        for item in call:
            assert not isinstance(item, str)
            batches += outputs[item.title] if isinstance(item, Reference) else [item]
        try:
            output = handler.handle_all(batches)
        finally:
            dropped = handler.take_dropped()
        return output, [
            {"rows": write_batch(each.rows, "")["rows"], "error": each.reason} for each in dropped
        ]

    return handle

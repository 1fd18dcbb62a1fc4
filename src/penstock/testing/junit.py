"""How cases went, as the JUnit XML that continuous integration reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from penstock.testing.report import text
from penstock.testing.result import Result

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(results: Sequence[Result], path: Path) -> None:
    """Writes one suite for each pipeline."""
    root = Element("testsuites", name="penstock")
    by_pipeline: dict[str, list[Result]] = {}
    for result in results:
        by_pipeline.setdefault(result.case.plan.name, []).append(result)
    for name, group in by_pipeline.items():
        _suite(root, name, group)
    indent(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _suite(root: Element, name: str, results: Sequence[Result]) -> None:
    errors = sum(result.error is not None for result in results)
    failures = sum(not result.passed for result in results) - errors
    seconds = sum(result.seconds for result in results)
    suite = SubElement(
        root, "testsuite", name=name, tests=str(len(results)), failures=str(failures),
        errors=str(errors), skipped="0", time=f"{seconds:.3f}",
    )  # fmt: skip
    for result in results:
        where = result.case.where
        case = SubElement(
            suite, "testcase", classname=name, name=_NOT_XML.sub("?", result.case.spec.name),
            file=where.file, line=str(where.line), time=f"{result.seconds:.3f}",
        )  # fmt: skip
        if not result.passed:
            kind = "error" if result.error else "failure"
            message = result.error.message if result.error else "the rows are not as expected"
            told = SubElement(case, kind, message=_NOT_XML.sub("?", message))
            told.text = _NOT_XML.sub("?", text(result))

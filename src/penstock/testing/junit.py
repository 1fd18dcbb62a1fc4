"""Results as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from penstock.testing.report import format_result
from penstock.testing.result import Result

_INVALID_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(results: Sequence[Result], path: Path) -> None:
    """Writes JUnit XML with one test suite for each pipeline."""
    root = Element("testsuites", name="penstock")
    by_pipeline: dict[str, list[Result]] = {}
    for result in results:
        by_pipeline.setdefault(result.case.plan.name, []).append(result)
    for name, group in by_pipeline.items():
        _add_suite(root, name, group)
    indent(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _add_suite(root: Element, name: str, results: Sequence[Result]) -> None:
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
            suite, "testcase", classname=name, name=_valid_xml(result.case.spec.name),
            file=where.file, line=str(where.line), time=f"{result.seconds:.3f}",
        )  # fmt: skip
        if not result.passed:
            tag = "error" if result.error else "failure"
            message = result.error.message if result.error else "the result is not as expected"
            problem = SubElement(case, tag, message=_valid_xml(message))
            problem.text = _valid_xml(format_result(result))


def _valid_xml(text: str) -> str:
    """Replaces characters that XML does not allow."""
    return _INVALID_CHARACTER.sub("?", text)

"""`penstock test`: runs the cases of pipeline files."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.options import Json, Sets
from penstock.core.errors import PenstockError, UserError, report

if TYPE_CHECKING:
    from penstock.testing.case import Case
    from penstock.testing.result import Result

HOW = """\
{file} has no cases. Write one under "tests:", there or in {beside}:

tests:
  - name: what it shows
    given:
      {source}:
        - {{column: value}}
    expect:
      {sink}:
        - {{column: value}}
"""

Pipelines = Annotated[
    list[Path],
    Parameter(metavar="FILE", help="Pipeline files, each on its own.", consume_multiple=True),
]


def test(
    files: Pipelines,
    /,
    *,
    case: Annotated[
        tuple[str, ...],
        Parameter(help="Only cases whose name contains or matches this; may be repeated."),
    ] = (),
    set: Sets = (),
    junit: Annotated[
        Path | None, Parameter(metavar="FILE", help="Also writes JUnit XML there.")
    ] = None,
    json: Json = False,
) -> int:
    """Run the cases of pipeline files: rows given at sources, rows expected at nodes.

    Cases stand under `tests:` in the file, or beside it in `x.test.yaml` for `x.yaml`. Nothing
    outside is read or written. Ends with 1 when a case fails, with 2 when a file is
    wrong or when there is no case.

    penstock test pipeline.yaml

    penstock test pipelines/*.yaml --case "late*" --junit report.xml
    """
    from penstock.testing.suite import named, pipeline_files, session

    chosen: list[Case] = []
    wrong = empty = False
    for file in pipeline_files(files):
        try:
            found = _cases(file, set)
        except PenstockError as error:
            print(report(error), file=sys.stderr)
            wrong = True
            continue
        empty |= not found
        chosen += [each for each in found if named(each, case)]
    results: list[Result] = []
    began = time.perf_counter()
    if chosen:
        packages = sorted({name for each in chosen for name in each.plan.spec.runtime.packages})
        with session(packages) as spark:
            results = _told((each.run(spark) for each in chosen), quiet=json)
    elif not wrong:
        if not empty:
            told = " or ".join(f'"{each}"' for each in case)
            print(
                report(UserError(f"no case has the name {told}", code="no-case")), file=sys.stderr
            )
        wrong = True
    _summary(results, time.perf_counter() - began, json)
    if junit:
        from penstock.testing.junit import write

        write(results, junit)
    if wrong or any(result.mistaken for result in results):
        return 2
    return int(not all(result.passed for result in results))


def _cases(file: Path, sets: Sets) -> list[Case]:
    from penstock import app
    from penstock.spec.load import tests_beside
    from penstock.testing.suite import cases

    found = cases(file, sets=sets)
    if not found:
        spec = app.plan(file, sets=sets).spec
        names = {"source": next(iter(spec.sources)), "sink": next(iter(spec.sinks))}
        print(HOW.format(file=file, beside=tests_beside(file), **names), file=sys.stderr)
    return found


def _told(results: Iterable[Result], *, quiet: bool) -> list[Result]:
    """The results, each told as soon as it is there."""
    from rich.console import Console

    from penstock.testing.report import render

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    told = []
    for result in results:
        told.append(result)
        if not quiet:
            console.print(render(result))
    return told


def _summary(results: list[Result], seconds: float, json: bool) -> None:
    from penstock.testing.report import facts, summary

    if json:
        from penstock.cli.printing import print_json

        failed = sum(not result.passed for result in results)
        cases = [facts(result) for result in results]
        counts = {"passed": len(results) - failed, "failed": failed, "seconds": round(seconds, 3)}
        print_json({**counts, "cases": cases})
    elif results:
        print(summary(results, seconds))

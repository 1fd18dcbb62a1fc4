"""`penstock test`: test cases of pipeline files."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.options import (
    Dialect,
    FunctionFiles,
    Json,
    Overrides,
    Settings,
    Strict,
    with_functions,
)
from penstock.core.deferred_pandas import defer_pandas
from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError, UserError

if TYPE_CHECKING:
    from penstock.testing.case import Case
    from penstock.testing.result import Result

NO_CASES = """\
{file} has no test cases. Add a case below "tests:" in the file or in {beside}:

tests:
  - name: the first case
    given:
      {source}:
        - {{column: value}}
    expect:
      {sink}:
        - {{column: value}}
"""

Pipelines = Annotated[
    list[Path],
    Parameter(metavar="FILE", help="Pipeline files, one pipeline each.", consume_multiple=True),
]


def test(
    files: Pipelines,
    /,
    *,
    case: Annotated[
        tuple[str, ...],
        Parameter(help="Only cases whose name contains or matches the text; may be repeated."),
    ] = (),
    overrides: Overrides = (),
    functions: FunctionFiles = (),
    dialect: Dialect = None,
    strict: Strict = False,
    settings: Settings = None,
    junit: Annotated[
        Path | None, Parameter(metavar="FILE", help="Also write JUnit XML to a file.")
    ] = None,
    json: Json = False,
) -> int:
    """Run the test cases of pipeline files: input rows of sources, expected rows of nodes.

    Test cases are below `tests:` in the file, or in `x.test.yaml` for `x.yaml`. No external
    system is read or written. The exit code is 1 if a case fails, and 2 if a file is invalid or
    there is no case.

    penstock test pipeline.yaml

    penstock test pipelines/*.yaml --case "late*" --junit report.xml
    """
    from penstock.spec.front_end import choose

    choose(dialect, strict, settings)
    from penstock.testing.suite import case_session, find_pipeline_files, matches_patterns

    selected: list[Case] = []
    invalid = empty = False
    for file in find_pipeline_files(files):
        try:
            cases = _load_cases(file, with_functions(overrides, functions))
        except PenstockError as error:
            print(format_error(error), file=sys.stderr)
            invalid = True
            continue
        empty |= not cases
        selected += [candidate for candidate in cases if matches_patterns(candidate, case)]
    results: list[Result] = []
    began = time.perf_counter()
    if selected:
        defer_pandas()
        packages = sorted({name for c in selected for name in c.plan.spec.runtime.packages})
        with case_session(packages) as spark:
            results = _print_results((c.run(spark) for c in selected), quiet=json)
    elif not invalid:
        if not empty:
            patterns = " or ".join(f'"{pattern}"' for pattern in case)
            print(
                format_error(UserError(f"no test case matches {patterns}", code="no-case")),
                file=sys.stderr,
            )
        invalid = True
    _print_summary(results, time.perf_counter() - began, json)
    if junit:
        from penstock.testing.junit import write_junit

        write_junit(results, junit)
    if invalid or any(result.has_user_error for result in results):
        return 2
    return int(not all(result.passed for result in results))


def _load_cases(file: Path, overrides: Overrides) -> list[Case]:
    from penstock import app
    from penstock.spec.front_end import companion_test_file
    from penstock.testing.suite import load_cases

    cases = load_cases(file, overrides=overrides)
    if not cases:
        spec = app.plan(file, overrides=overrides).spec
        names = {"source": next(iter(spec.sources)), "sink": next(iter(spec.sinks))}
        text = NO_CASES.format(file=file, beside=companion_test_file(file), **names)
        print(text, file=sys.stderr)
    return cases


def _print_results(results: Iterable[Result], *, quiet: bool) -> list[Result]:
    """Prints each result at the end of its case, and returns all results."""
    from penstock.cli.printing import print_renderable
    from penstock.testing.report import render_result

    printed = []
    for result in results:
        printed.append(result)
        if not quiet:
            print_renderable(render_result(result))
    return printed


def _print_summary(results: list[Result], seconds: float, json: bool) -> None:
    from penstock.testing.report import format_summary, result_to_dict

    if json:
        from penstock.cli.printing import print_json

        failed = sum(not result.passed for result in results)
        cases = [result_to_dict(result) for result in results]
        counts = {"passed": len(results) - failed, "failed": failed, "seconds": round(seconds, 3)}
        print_json({**counts, "cases": cases})
    elif results:
        print(format_summary(results, seconds))

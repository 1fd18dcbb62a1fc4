"""`penstock doctor`: checks of the machine."""

from __future__ import annotations

import json as json_text
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.options import Json
from penstock.core.cache import cache_directory

if TYPE_CHECKING:
    from penstock.runtime.doctor import Check

Quick = Annotated[bool, Parameter(help="Skip the start of Spark, which takes some seconds.")]
Cache = Annotated[bool, Parameter(help="Build the class cache and wait for the end of the build.")]

# The classes of this pipeline are the content of the class cache.
FIRST = """\
name: first
sources:
  orders:
    type: generate
    rows: 10
    fields: {id: sequence, at: timestamp, item: name}
    watermark: {column: at, delay: 1s}
transforms:
  marked:
    type: python
    from: orders
    code: |
      def transform(batch):
          return batch
  minutes:
    type: sql
    sql: SELECT window.start, item, count(*) AS n FROM marked GROUP BY window(at, '1 minute'), item
sinks:
  nothing: {type: blackhole, from: marked}
  files: {type: files, from: minutes, path: out, format: json}
"""
_ELSEWHERE = "Free disk space, or set PENSTOCK_CACHE to a writable directory."
STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(*, quick: Quick = False, cache: Cache = False, json: Json = False) -> int:
    """Check Python, Spark, Java, memory, disk and network, and start Spark once.

    Each line is the result of one check, with advice if the check fails.
    The exit code is 1 if a check fails.

      penstock doctor
      penstock doctor --quick
      penstock doctor --cache
      penstock doctor --json
    """
    results = _run_checks(session=not quick, cache=cache)
    if json:
        checks = list(results)
        facts = {"ok": _succeeded(checks), "checks": [asdict(check) for check in checks]}
        print(json_text.dumps(facts, indent=2))
    else:
        checks = _print(results)
    return 0 if _succeeded(checks) else 1


def _run_checks(*, session: bool, cache: bool) -> Iterator[Check]:
    from penstock.runtime.doctor import run_checks

    yield from run_checks(session=session and not cache)
    if cache:
        yield _build_class_cache()


def _build_class_cache() -> Check:
    """Builds the class cache from a run of a small pipeline."""
    from penstock import app
    from penstock.engine.spark_session import classcache
    from penstock.runtime.doctor import Check

    cache = cache_directory()
    try:
        (cache / "classes").mkdir(parents=True, exist_ok=True)
    except OSError:
        return Check("class cache", "fail", f"could not be built in {cache}", _ELSEWHERE)
    classcache.clear_failures()
    with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
        path = Path(directory, "first.yaml")
        path.write_text(FIRST)
        app.run(path)
    built = classcache.await_build()
    if built is None:
        advice = "Remove Java options and class path directories that disable the class cache."
        return Check("class cache", "fail", "not supported by this Java", advice)
    if not built:
        return Check("class cache", "fail", f"could not be built in {cache}", _ELSEWHERE)
    return Check("class cache", "ok", f"built in {cache}")


def _succeeded(checks: Iterable[Check]) -> bool:
    return all(check.state != "fail" for check in checks)


def _print(results: Iterable[Check]) -> list[Check]:
    """Prints each check at its end, and returns all checks."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    checks = []
    for check in results:
        checks.append(check)
        name = f"{check.name:<16}"
        console.print(Text.assemble((f"{check.state:<5}", STYLES[check.state]), name, check.found))
        if check.advice and check.state != "ok":
            console.print(Text(f"{'':21}{check.advice}", "yellow"))
    return checks

"""`penstock doctor`: whether this machine can run pipelines."""

from __future__ import annotations

import json as json_text
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.options import Json

if TYPE_CHECKING:
    from penstock.runtime.health import Check

Quick = Annotated[bool, Parameter(help="Starts no Spark session, which takes some seconds.")]
Cache = Annotated[
    bool, Parameter(help="Makes the class cache and waits for it: for images and CI.")
]

# What it uses is what later runs find in the class cache.
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
_ELSEWHERE = "is the disk full, is it read-only? PENSTOCK_CACHE names another directory"
STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(*, quick: Quick = False, cache: Cache = False, json: Json = False) -> int:
    """Look at Python, Spark, Java, memory, disk and network, and start Spark once.

    Each line says what was found and, where something is amiss, what to do.
    The exit code is 1 where something fails.

      penstock doctor
      penstock doctor --quick
      penstock doctor --cache
      penstock doctor --json
    """
    looked = _looked(session=not quick, cache=cache)
    if json:
        found = list(looked)
        facts = {"ok": _well(found), "checks": [asdict(check) for check in found]}
        print(json_text.dumps(facts, indent=2))
    else:
        found = _print(looked)
    return 0 if _well(found) else 1


def _looked(*, session: bool, cache: bool) -> Iterator[Check]:
    from penstock.runtime.health import checks

    yield from checks(session=session and not cache)
    if cache:
        yield _made()


def _made() -> Check:
    """Runs a first pipeline, from which the class cache learns."""
    from penstock import app
    from penstock.engine import classcache
    from penstock.runtime.health import Check

    place = classcache.directory()
    try:
        (place / "classes").mkdir(parents=True, exist_ok=True)
    except OSError:
        return Check("class cache", "fail", f"could not be made in {place}", _ELSEWHERE)
    classcache.forget_failures()
    with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
        path = Path(directory, "first.yaml")
        path.write_text(FIRST)
        app.run(path)
    made = classcache.await_made()
    if made is None:
        advice = "an option of Java's excludes it, or a directory on its class path"
        return Check("class cache", "fail", "this Java can have none", advice)
    if not made:
        return Check("class cache", "fail", f"could not be made in {place}", _ELSEWHERE)
    return Check("class cache", "ok", f"is made, in {place}")


def _well(found: Iterable[Check]) -> bool:
    return all(check.state != "fail" for check in found)


def _print(looked: Iterable[Check]) -> list[Check]:
    """Prints each check as soon as it is made."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    found = []
    for check in looked:
        found.append(check)
        name = f"{check.name:<16}"
        console.print(Text.assemble((f"{check.state:<5}", STYLES[check.state]), name, check.found))
        if check.advice and check.state != "ok":
            console.print(Text(f"{'':21}{check.advice}", "yellow"))
    return found

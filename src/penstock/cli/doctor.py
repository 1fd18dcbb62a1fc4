"""`penstock doctor`: whether this machine can run pipelines."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.options import Json

if TYPE_CHECKING:
    from penstock.runtime.health import Check

Quick = Annotated[bool, Parameter(help="Starts no Spark session, which takes some seconds.")]

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(*, quick: Quick = False, json: Json = False) -> int:
    """Look at Python, Spark, Java, memory, disk and network, and start Spark once.

    Each line says what was found and, where something is amiss, what to do.
    The exit code is 1 where something fails.

      penstock doctor
      penstock doctor --quick
      penstock doctor --json
    """
    from penstock.runtime.health import checks

    looked = checks(session=not quick)
    if json:
        found = list(looked)
        facts = {"ok": _well(found), "checks": [asdict(check) for check in found]}
        print(json_text.dumps(facts, indent=2))
    else:
        found = _print(looked)
    return 0 if _well(found) else 1


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

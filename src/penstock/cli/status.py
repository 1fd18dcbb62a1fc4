"""`penstock status`: how a pipeline is doing."""

from __future__ import annotations

import json as json_text
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.cli.options import Files, Json, Sets

if TYPE_CHECKING:
    from penstock.runtime.status import Status

RUNS = 5


def status(files: Files, /, *, set: Sets = (), json: Json = False) -> None:
    """Show whether a pipeline runs, what it has done so far, and its last runs.

    The run is found by its state directory, also on another machine that
    shares it. The exit code is 0 in any case.

      penstock status shop.yaml
      penstock status shop.yaml --json | jq .running
    """
    from penstock import app
    from penstock.runtime.state import StateDirectory
    from penstock.runtime.status import Status

    plan = app.plan(files, sets=set)
    found = Status.of(StateDirectory(plan.state))
    if json:
        facts = {"pipeline": plan.name, "state": str(plan.state), "running": found.running}
        print(json_text.dumps({**facts, **asdict(found)}, indent=2))
    else:
        _print(plan.name, found)


def _print(name: str, found: Status) -> None:
    from rich.console import Console

    from penstock.cli.flows import flow_table

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]{name}[/] {_state(found)}")
    if found.numbers:
        console.print(flow_table(found.numbers, moving=found.running))
    if found.runs:
        console.print(f"\n[dim]the last runs ({len(found.runs)} in all)[/]")
    for run in found.runs[:RUNS]:
        console.print(f"  {_run(run)}")


def _state(found: Status) -> str:
    from penstock.cli.flows import happened, span, watermark

    told = happened(found.numbers) if found.numbers else []
    if found.owner is None:
        if not found.runs and not found.numbers:
            return "is not running and never was"
        return " · ".join(["is complete" if found.complete else "is not running", *told])
    by = f"process {found.owner.get('pid', '?')} on {found.owner.get('host', '?')}"
    since = f"since {found.owner.get('since', '?')}"
    if found.numbers is None:
        return f"is starting · {by}"
    running = f"is running for {span(found.numbers['seconds'])}"
    return " · ".join([running, *told, *watermark(found.numbers), by, since])


def _run(run: Mapping[str, Any]) -> str:
    from penstock.cli.flows import span

    began, ended = (datetime.fromisoformat(run[key]) for key in ("began", "ended"))
    took = span((ended - began).total_seconds())
    return f"{began:%Y-%m-%d %H:%M:%S} UTC  {took:>12}  {run['ending'].replace('_', ' ')}"

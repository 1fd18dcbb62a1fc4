"""`penstock status`: the state of a pipeline and its last runs."""

from __future__ import annotations

import json as json_text
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from penstock.cli.options import Files, Json, Overrides

if TYPE_CHECKING:
    from penstock.runtime.state.status import FinishedRun, Status

RUNS = 5


def status(files: Files, /, *, overrides: Overrides = (), json: Json = False) -> None:
    """Show the state, metrics and last runs of a pipeline.

    Finds the run by its state directory, also from another machine that shares the directory. A
    run is starting until each of its sources has subscribed, and running from then on.
    The exit code is 0 whether the pipeline is running or not.

      penstock status shop.yaml
      penstock status shop.yaml --json | jq .running
    """
    from penstock import app
    from penstock.control import PipelineControl

    plan = app.plan(files, overrides=overrides)
    current = PipelineControl.of(plan).status()
    if json:
        facts = {"pipeline": plan.name, "state": str(plan.state), "running": current.running,
                 "starting": current.starting}  # fmt: skip
        print(json_text.dumps({**facts, **asdict(current)}, indent=2))
    else:
        print_status(plan.name, current)


def print_status(name: str, current: Status) -> None:
    """Prints the status of a pipeline."""
    from rich.console import Console

    from penstock.cli.metrics_table import (
        format_executions,
        format_side_outputs,
        format_states,
        metrics_table,
    )
    from penstock.cli.printing import print_renderable

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]{name}[/] {_format_state(current)}")
    if current.numbers:
        print_renderable(metrics_table(current.numbers, moving=current.owner is not None))
        for line in format_states(current.numbers):
            console.print(line, markup=False)
        for line in format_side_outputs(current.numbers):
            console.print(line, style="yellow", markup=False)
        for line in format_executions(current.numbers) if current.owner else ():
            console.print(line, style="red", markup=False)
    if current.runs:
        console.print(f"\n[dim]last runs ({len(current.runs)} in total)[/]")
    for run in current.runs[:RUNS]:
        console.print(f"  {_format_run(run)}")


def _format_state(current: Status) -> str:
    from penstock.cli.metrics_table import format_counts, format_elapsed, format_watermark

    counts = format_counts(current.numbers) if current.numbers else []
    if current.owner is None:
        if not current.runs and not current.numbers:
            return "has never run"
        return " · ".join(["is complete" if current.complete else "is not running", *counts])
    process, since = str(current.owner), f"since {current.owner.since or '?'}"
    if current.starting or current.numbers is None:
        return f"is starting · {process}"
    running = f"is running for {format_elapsed(current.numbers['seconds'])}"
    watermark = format_watermark(current.numbers["watermarks"].values())
    return " · ".join([running, *counts, *watermark, process, since])


def _format_run(run: FinishedRun) -> str:
    from penstock.cli.metrics_table import format_elapsed

    began, ended = map(datetime.fromisoformat, (run.began, run.ended))
    elapsed = format_elapsed((ended - began).total_seconds())
    return f"{began:%Y-%m-%d %H:%M:%S} UTC  {elapsed:>12}  {run.ending.replace('_', ' ')}"

"""`penstock status`: the state of a pipeline and its last runs, and the health of several ones."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.options import Files, Json, Overrides
from penstock.cli.server_options import Data, Server, connect, server_of
from penstock.core.errors import UserError
from penstock.core.text import printable

if TYPE_CHECKING:
    from penstock.runtime.health import Health
    from penstock.runtime.state.status import FinishedRun, Status
    from penstock.server_client import ServerClient

All = Annotated[
    bool,
    Parameter(
        name="--all",
        help="Show the health of all pipelines in the directories FILE, worst first; by default in "
        "the current one.",
    ),
]

RUNS = 5
_NONE: Mapping[str, str | None] = {}
COLORS = {"failed": "red", "crash-looping": "red", "unknown": "red", "retrying": "yellow",
          "slow": "yellow", "running": "green", "idle": "green"}  # fmt: skip


def status(
    files: Files = [],  # noqa: B006
    /,
    *,
    overrides: Overrides = (),
    all: All = False,
    json: Json = False,
    server: Server = None,
    data: Data = None,
) -> None:
    """Show the state, metrics and last runs of a pipeline.

    Finds the run by its state directory, also from another machine that shares the directory. A
    run is starting until each of its sources has subscribed, and running from then on. With
    --server shows all pipelines of a server.
    The exit code is 0 whether the pipeline is running or not.

      penstock status shop.yaml
      penstock status shop.yaml --json | jq .running
      penstock status --all
      penstock status --all --server http://localhost:7077
    """
    if all and (server or (server_of(None) and not files)):
        _print_served(connect(server, data), json)
        return
    if all:
        _print_all(files or [Path()], overrides, json)
        return
    if not files:
        raise UserError(
            "penstock status requires FILE", code="usage",
            hint="Name a pipeline file, or show all pipelines with penstock status --all.",
        )  # fmt: skip
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


def _print_all(directories: list[Path], overrides: tuple[str, ...], json: bool) -> None:
    from penstock.catalog import pipeline_files

    files = [file for directory in directories for file in pipeline_files(directory)]
    found = sorted(
        ((file, *_health(file, overrides)) for file in files),
        key=lambda each: (-each[2].severity, each[1]),
    )
    _print_found(found, json)


def _print_served(client: ServerClient, json: bool) -> None:
    pipelines = client.pipelines()
    found = [(Path(each.file), each.name, each.health) for each in pipelines]
    _print_found(found, json, {each.file: each.ejected for each in pipelines})


def _print_found(
    found: list[tuple[Path, str, Health]], json: bool, ejected: Mapping[str, str | None] = _NONE
) -> None:
    """Prints pipelines. `ejected` are the reasons of ejections from shares, by file."""
    from penstock.cli.printing import print_json

    if json:
        print_json([
            {"pipeline": name, "file": str(file), **asdict(health),
             "ejected": ejected.get(str(file))}
            for file, name, health in found
        ])  # fmt: skip
    else:
        _print_list(found, ejected)


def _health(file: Path, overrides: tuple[str, ...]) -> tuple[str, Health]:
    """Returns the name and the health of the pipeline in a file, which may be invalid."""
    from penstock import app
    from penstock.control import PipelineControl
    from penstock.core.errors import PenstockError, flatten_errors
    from penstock.runtime.health import Health, Reason, health_of

    try:
        plan = app.plan(file, overrides=overrides)
        return plan.name, health_of(PipelineControl.of(plan).status())
    except PenstockError as error:
        first = flatten_errors(error)[0]
        return file.stem, Health("unknown", None, Reason(first.code, first.message, first.hint))


def _print_list(found: list[tuple[Path, str, Health]], ejected: Mapping[str, str | None]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    if not found:
        console.print("no pipelines; create one with penstock new files > pipeline.yaml")
    width = max((len(name) for _, name, _ in found), default=0)
    for file, name, health in found:
        line = Text(f"{name.ljust(width)}  ")
        line.append(health.state.ljust(13), COLORS.get(health.state, "dim"))
        line.append(f"  since {health.since}" if health.since else "", "dim")
        reason = health.reason
        if reason is not None:
            where = f"{reason.node}: " if reason.node else ""
            line.append(f"  {where}{reason.message} [{reason.code}]")
        if health.next_attempt:
            line.append(f"  next attempt {health.next_attempt}", "dim")
        line.append(f"  {file}", "dim")
        if reason_of_ejection := ejected.get(str(file)):
            line.append(f"\n{' ' * width}  {reason_of_ejection}", "yellow")
        console.print(line)


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
    for number, run in enumerate(current.runs[:RUNS]):
        console.print(f"  {_format_run(run)}")
        for line in _format_errors(run) if number == 0 else ():
            console.print(line, style="red", markup=False)


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


def _format_errors(run: FinishedRun) -> Iterator[str]:
    """Yields the errors that ended a run, with their places and hints."""
    for report in (each for reports in run.errors.values() for each in reports):
        place = f" ({report['file']}:{report['line']})" if report.get("line") else ""
        yield f"    error[{report['code']}]: {printable(report['message'])}{place}"
        if report.get("hint"):
            yield f"    {printable(report['hint'])}"

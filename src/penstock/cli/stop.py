"""`penstock stop`: graceful stop of a running pipeline."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.options import Files, Overrides
from penstock.cli.server_options import Data, Server, connect, uses_server
from penstock.core.errors import PlanError, StateError
from penstock.core.units import duration_text, positive_seconds

if TYPE_CHECKING:
    from penstock.server_client import ServerClient

Timeout = Annotated[str, Parameter(metavar="TIME", help="Time to wait for the end of the run.")]


def stop(
    files: Files, /, *, overrides: Overrides = (), timeout: Timeout = "60s",
    server: Server = None, data: Data = None,
) -> None:  # fmt: skip
    """Stop a running pipeline after its current batch, and wait for its end.

    Finds the run by its state directory, also from another machine that shares the directory.
    The next run resumes from the last committed batch. Over a server, FILE is the name of one of
    its pipelines.

      penstock stop shop.yaml
      penstock stop shop.yaml --timeout 5m
      penstock stop shop --server http://localhost:7077
    """
    try:
        wait_seconds = positive_seconds(timeout)
    except ValueError as error:
        raise PlanError(f"--timeout {timeout}: {error}", code="invalid-option") from None

    if uses_server(server, files):
        for file in files:
            _stop_on_server(connect(server, data), str(file), wait_seconds)
        return

    from penstock import app
    from penstock.control import PipelineControl

    plan = app.plan(files, overrides=overrides)
    owner = PipelineControl.of(plan).stop(wait_seconds)
    if owner is None:
        print(f"{plan.name} is not running")
    else:
        print(f"{plan.name} stopped (process {owner.pid or '?'})")


def _stop_on_server(client: ServerClient, name: str, seconds: float) -> None:
    """Stops a pipeline of a server. Raises StateError if its run does not end in time."""
    id = client.stop(client.pipeline(name).id).id
    deadline = time.monotonic() + seconds
    while (pipeline := client.show(id)).runs:
        if time.monotonic() > deadline:
            raise StateError(
                f"{name} did not stop within {duration_text(seconds)}: it is "
                f"{pipeline.health.state}",
                code="still-running", hint="Set a longer --timeout, or read penstock logs.",
            )  # fmt: skip
        time.sleep(min(0.5, seconds))
    print(f"{name} stopped")

"""`penstock stop`: graceful stop of a running pipeline."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from penstock.cli.options import Files, Overrides
from penstock.core.errors import PlanError
from penstock.core.units import positive_seconds

Timeout = Annotated[str, Parameter(metavar="TIME", help="Time to wait for the end of the run.")]


def stop(files: Files, /, *, overrides: Overrides = (), timeout: Timeout = "60s") -> None:
    """Stop a running pipeline after its current batch, and wait for its end.

    Finds the run by its state directory, also from another machine that shares the directory.
    The next run resumes from the last committed batch.

      penstock stop shop.yaml
      penstock stop shop.yaml --timeout 5m
    """
    try:
        wait_seconds = positive_seconds(timeout)
    except ValueError as error:
        raise PlanError(f"--timeout {timeout}: {error}", code="invalid-option") from None

    from penstock import app
    from penstock.control import PipelineControl

    plan = app.plan(files, overrides=overrides)
    owner = PipelineControl.of(plan).stop(wait_seconds)
    if owner is None:
        print(f"{plan.name} is not running")
    else:
        print(f"{plan.name} stopped (process {owner.pid or '?'})")

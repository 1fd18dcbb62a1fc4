"""`penstock stop`: ends a running pipeline in good order."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from penstock.cli.options import Files, Sets
from penstock.core.errors import PlanError
from penstock.core.units import seconds

Timeout = Annotated[str, Parameter(metavar="TIME", help="How long to wait for the end.")]


def stop(files: Files, /, *, set: Sets = (), timeout: Timeout = "60s") -> None:
    """Stop a running pipeline after the batch under way, and wait for its end.

    The run is found by its state directory, also on another machine that
    shares it. The next run goes on where it stopped.

      penstock stop shop.yaml
      penstock stop shop.yaml --timeout 5m
    """
    from penstock import app
    from penstock.runtime.state import StateDirectory
    from penstock.runtime.stop import stop_other

    try:
        patience = seconds(timeout)
    except ValueError as error:
        raise PlanError(f"--timeout {timeout}: {error}", code="invalid-option") from None
    plan = app.plan(files, sets=set)
    owner = stop_other(StateDirectory(plan.state), patience)
    if owner is None:
        print(f"{plan.name} is not running")
    else:
        print(f"{plan.name} stopped (process {owner.get('pid', '?')})")

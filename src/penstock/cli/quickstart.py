"""`penstock quickstart`: records within seconds, from a pipeline that needs nothing."""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from penstock.core.errors import UserError

Keep = Annotated[
    Path | None, Parameter(metavar="DIR", help="Writes the pipeline there, for you to change.")
]

NAME = "quickstart.yaml"
PIPELINE = """\
# Orders are made up, SQL picks the large ones, and they are printed.
name: quickstart

sources:
  orders:
    type: generate
    rows: 40            # without it the orders never end
    rate: 10            # a second
    fields:
      id: sequence
      at: timestamp
      customer: name
      item: {type: choice, of: [tea, coffee, cocoa], weights: [5, 4, 1]}
      price: {type: number, max: 50, decimals: 2}

transforms:
  large:
    type: sql
    sql: SELECT id, customer, item, price FROM orders WHERE price > 30

sinks:
  terminal:
    type: print
    from: large
"""
NEXT = """
What next:
  penstock new files > pipeline.yaml     a pipeline of your own, with comments
  penstock check pipeline.yaml           all its mistakes at once
  penstock run pipeline.yaml             run it
  penstock list                          what else there is to read, do and write"""


def quickstart(*, keep: Keep = None) -> int:
    """Run a first pipeline: made-up orders, a line of SQL, rows on the terminal.

    It needs no file and leaves none behind.

      penstock quickstart
      penstock quickstart --keep first     then change first/quickstart.yaml
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
            return _show(Path(directory), NEXT)
    path = keep / NAME
    if path.exists():
        raise UserError(
            f"{path} is there already",
            code="file-exists",
            hint=f"run it with penstock run {shlex.quote(str(path))}, or name another directory",
        )
    try:
        keep.mkdir(parents=True, exist_ok=True)
        return _show(keep, f"\n{path} is yours: change it and penstock run {path}{NEXT}")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}", code="unwritable") from error


def _show(directory: Path, after: str) -> int:
    from penstock.cli.run import run

    path = directory / NAME
    path.write_text(PIPELINE)
    print(f"{PIPELINE}\n--- penstock run {NAME}\n", flush=True)
    code = run([path], quiet=not sys.stderr.isatty())
    if code == 0:
        print(after)
    return code

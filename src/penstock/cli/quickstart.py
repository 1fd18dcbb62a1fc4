"""`penstock quickstart`: a sample pipeline without external systems."""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from penstock.core.errors import UserError

Keep = Annotated[
    Path | None, Parameter(metavar="DIR", help="Keep the pipeline file in this directory.")
]

NAME = "quickstart.yaml"
PIPELINE = """\
# Generates orders, selects the large ones with SQL, and prints them.
name: quickstart

sources:
  orders:
    type: generate
    rows: 40            # remove for an endless stream
    rate: 10            # per second
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
Next steps:
  penstock new files > pipeline.yaml     write a pipeline file from a template
  penstock check pipeline.yaml           check the file
  penstock run pipeline.yaml             run the pipeline
  penstock list                          list sources, transforms, sinks and formats"""


def quickstart(*, keep: Keep = None) -> int:
    """Run a sample pipeline: generated orders, a SQL query, rows on the terminal.

    Needs no file and leaves no file behind.

      penstock quickstart
      penstock quickstart --keep first     keeps first/quickstart.yaml
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
            return _run_sample(Path(directory), NEXT)
    path = keep / NAME
    if path.exists():
        raise UserError(
            f"{path} exists",
            code="file-exists",
            hint=f"Run penstock run {shlex.quote(str(path))}, or choose another directory.",
        )
    try:
        keep.mkdir(parents=True, exist_ok=True)
        return _run_sample(
            keep, f"\nwrote {path}; edit the file, then run: penstock run {path}\n{NEXT}"
        )
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", code="unwritable-file") from error


def _run_sample(directory: Path, after: str) -> int:
    from penstock.cli.run import run

    path = directory / NAME
    path.write_text(PIPELINE)
    print(f"{PIPELINE}\n--- penstock run {NAME}\n", flush=True)
    code = run([path], quiet=not sys.stderr.isatty())
    if code == 0:
        print(after)
    return code

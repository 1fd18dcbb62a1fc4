"""`penstock run`: runs a pipeline."""

from __future__ import annotations

import sys

from penstock import app
from penstock.cli.options import Files, Sets
from penstock.core.errors import report
from penstock.core.log import make


def run(
    files: Files, /, *, set: Sets = [], fresh: bool = False, until_caught_up: bool = False
) -> int:
    """Runs a pipeline until it ends, or for ever where a source has no end."""
    options = app.RunOptions(
        until="caught_up" if until_caught_up else "auto",
        fresh=fresh,
        log=make(),
        signals=True,
        on_note=lambda text: print(text, file=sys.stderr),
    )
    outcome = app.run(files, sets=set, options=options)
    for error in outcome.errors.values():
        print(report(error), file=sys.stderr)
    return outcome.exit_code

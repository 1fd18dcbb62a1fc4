"""`penstock run`: runs a pipeline."""

from __future__ import annotations

import sys

from penstock.cli.options import Files, Sets


def run(
    files: Files, /, *, set: Sets = (), fresh: bool = False, until_caught_up: bool = False
) -> int:
    """Run a pipeline to its end, or for ever where a source has no end.

    Ctrl-C finishes the batch under way; a second one stops at once. The next run goes on where
    this one stopped.

      penstock run late-flights.yaml
      penstock run shop.yaml --set sinks.out.path=elsewhere --fresh
      penstock run shop.yaml --until-caught-up --log json
    """
    from penstock import app
    from penstock.core.errors import report
    from penstock.core.log import make

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

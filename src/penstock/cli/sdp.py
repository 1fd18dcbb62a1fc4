"""`penstock sdp`: cases of handlers."""

from __future__ import annotations

import json
import sys
from typing import Annotated

from cyclopts import Parameter

from penstock.core.error_report import format_error
from penstock.core.text import printable

CasesFile = Annotated[str, Parameter(name="CASES", help="A JSON file with cases.")]


def sdp(cases: CasesFile, /) -> int:
    """Run cases of the handlers of stream-data-processor.

    A case has the name of a handler, its options, and calls with batches. The same document is
    printed with the status and the output batches of each case, and rows and lines that were left
    out. The exit code is 2 if a case is invalid; the other cases are run.

      penstock sdp cases.json
      penstock sdp cases.json > results.json
    """
    from penstock.testing.handler_cases.case_file import read_cases
    from penstock.testing.handler_cases.run import run_cases

    document, errors = run_cases(read_cases(cases))
    print(printable(json.dumps(document, indent=1)))
    for error in errors:
        print(f"{format_error(error)}\n", file=sys.stderr)
    return errors[0].policy.exit_code if errors else 0

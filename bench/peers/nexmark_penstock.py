"""The bench `nexmark` in Penstock: runs each script that a line of the input names, in one session.

An answer is a line of JSON: `seconds`, or `error`.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import app
from penstock.core.errors import PenstockError
from penstock.runtime.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> None:
    spark: SparkSession | None = None
    with ExitStack() as stack:
        for line in sys.stdin:
            try:
                plan = app.plan(Path(line.strip()))
                if spark is None:
                    spark = stack.enter_context(session(plan, length="endless"))
                began = time.monotonic()
                options = app.RunOptions(until="caught_up")
                outcome = app.run(plan, spark=spark.newSession(), options=options)
                answer: dict[str, float | str] = {"seconds": time.monotonic() - began}
                for error in outcome.errors.values():
                    answer = {"error": str(error)}
            except PenstockError as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

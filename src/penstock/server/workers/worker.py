"""The process of a worker: one request of JSON on each line of standard input, and its answer."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from typing import Any

from pydantic_core import to_json

from penstock.core.errors import Bug
from penstock.core.known_secrets import conceal, forget_secrets
from penstock.server.workers.operations import perform


def main() -> None:
    """Answers requests until the end of the input. Output of user code goes to standard error."""
    answers = sys.stdout
    for line in sys.stdin:
        request = json.loads(line)
        with redirect_stdout(sys.stderr):
            answer = _answer(request)
        text = to_json(answer, fallback=str).decode()
        print(conceal(text), file=answers, flush=True)
        forget_secrets()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        return perform(request)
    except Exception as error:
        bug = Bug(f"{type(error).__name__}: {error}")
        return {"errors": [{**bug.fields(), "file": None}], "status": bug.policy.http_status}


if __name__ == "__main__":
    main()

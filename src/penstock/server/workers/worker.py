"""The process of a worker: one request of JSON on each line of standard input, and its answer."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from pydantic_core import to_json

from penstock.core.errors import Bug
from penstock.core.known_secrets import conceal, forget_secrets
from penstock.server.workers.memory import limit_data
from penstock.server.workers.operations import perform


def main() -> None:
    """Answers requests until the end of the input. Output of user code goes to standard error.

    An empty answer comes first: the modules are imported.
    """
    limit_data()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        answer = _answer(json.loads(line))
        text = to_json(answer, fallback=str).decode()
        print(conceal(text), file=answers, flush=True)
        forget_secrets()


def end_with_parent(parent: int) -> None:
    """Kills this process and its children after the end of the server."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.killpg(0, signal.SIGKILL)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        return perform(request)
    except Exception as error:
        bug = Bug(f"{type(error).__name__}: {error}")
        return {"errors": [{**bug.fields(), "file": None}], "status": bug.policy.http_status}


if __name__ == "__main__":
    main()

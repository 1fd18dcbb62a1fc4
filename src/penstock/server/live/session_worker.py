"""Process of a worker with a Spark session: a request on each line of standard input.

A request has `operation`, `file`, its unsaved `text`, `variables` and `arguments`. Each answer is a
line: an event with its facts, at last `end`. The line `{"cancel": true}` ends the operation under
way.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from py4j.protocol import Py4JNetworkError
from pydantic_core import to_json

from penstock.core.deferred_pandas import defer_pandas
from penstock.core.error_report import to_dicts
from penstock.core.errors import Bug, PenstockError, flatten_errors
from penstock.core.known_secrets import conceal, forget_secrets
from penstock.server.live.session_operations import OPERATIONS, Work
from penstock.server.live.warm_session import WarmSession
from penstock.server.workers.memory import limit_data
from penstock.server.workers.operations import variables_set
from penstock.server.workers.worker import end_with_parent
from penstock.spec.documents.files import unsaved


def main() -> None:
    """Performs requests until the end of the input. Output of user code goes to standard error."""
    limit_data()
    defer_pandas()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    requests = _Requests(sys.stdin)
    session = WarmSession()
    while (request := requests.next()) is not None:
        perform(Work(session, _Answers(answers), requests.cancelled), request)
        forget_secrets()
    session.close()


def perform(work: Work, request: Mapping[str, Any]) -> None:
    """Performs a request, and sends its events. Errors are the event `failed`.

    Ends the process if Java has ended. The server then reports its end, and starts another one.
    """
    file, text = Path(request["file"]), request.get("text")
    try:
        with unsaved({} if text is None else {file: text}), variables_set(request["variables"]):
            OPERATIONS[request["operation"]](work, file, **request["arguments"])
    except PenstockError as error:
        status = flatten_errors(error)[0].policy.http_status
        work.send("failed", {"errors": to_dicts(error), "status": status})
    except (ConnectionError, Py4JNetworkError):
        os._exit(1)
    except Exception as error:
        bug = Bug(f"{type(error).__name__}: {error}")
        errors = [{**bug.fields(), "file": None}]
        work.send("failed", {"errors": errors, "status": bug.policy.http_status})
    work.send("end", {})


class _Answers:
    """The lines of answers, with asterisks in place of secrets."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __call__(self, event: str, facts: Mapping[str, Any]) -> int:
        line = conceal(to_json({"event": event, "facts": facts}, fallback=str).decode())
        print(line, file=self._stream, flush=True)
        return len(line)


class _Requests:
    """The requests of standard input, read by a thread of its own."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._found: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._cancelled = threading.Event()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def next(self) -> dict[str, Any] | None:
        """Waits for the next request; None at the end of the input."""
        request = self._found.get()
        self._cancelled.clear()
        return request

    def cancelled(self) -> bool:
        """Returns whether the request under way is cancelled."""
        return self._cancelled.is_set()

    def _read(self, lines: Iterable[str]) -> None:
        for line in lines:
            request = json.loads(line)
            if request.get("cancel"):
                self._cancelled.set()
            else:
                self._found.put(request)
        self._cancelled.set()
        self._found.put(None)


if __name__ == "__main__":
    main()

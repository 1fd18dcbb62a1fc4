"""Process of a receiving source: appends all received messages to the journal.

Run with `python -m penstock.runtime.receiving.receiver_process`: standard input carries the
pickled source, and its end requests a stop. Standard output carries a line `ready` when the source
receives, `caught-up` when the journal has the backlog of the system, and then the error of the
process, if any. The parent may end at any time.
"""

from __future__ import annotations

import asyncio
import pickle
import resource
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from penstock.core.error_codec import encode
from penstock.core.errors import Bug, PenstockError
from penstock.runtime.receiving.receiver_log import bound_log
from penstock.sdk import ReceivingSource

READY = "ready"
CAUGHT_UP = "caught-up"
LOG = "receiver.log"
"""The file of standard error, beside the journal."""
CANCEL_AGAIN = 8.0
"""Seconds after which a cancelled receiver is cancelled again: `asyncio.wait_for` of Python 3.11
may swallow a cancellation. Longer than the shutdown of any connector."""


def main() -> int:
    """Receives until the end of standard input. Returns 0, or 1 after an error."""
    source = pickle.load(sys.stdin.buffer)
    bound_log(source.directory / LOG)
    _raise_file_limit()
    try:
        asyncio.run(_receive(source))
    except PenstockError as error:
        print(encode(error), flush=True)
    except Exception as error:
        print(encode(Bug(f"{type(error).__name__}: {error}")), flush=True)
        raise
    else:
        return 0
    return 1


def _raise_file_limit() -> None:
    """Permits as many open files, and so connections, as the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _receive(source: ReceivingSource[Any]) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def await_end() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=await_end, daemon=True).start()
    with source.journal() as journal:
        for event, line in ((journal.ready, READY), (journal.caught_up, CAUGHT_UP)):
            threading.Thread(target=_report, args=(event, line), daemon=True).start()
        await await_first(source.receive(journal), ended)


def _report(event: threading.Event, line: str) -> None:
    event.wait()
    print(line, flush=True)


async def await_first(receiving: Coroutine[Any, Any, None], ended: asyncio.Event) -> None:
    """Waits for the coroutine or the event, cancels the other, and raises the coroutine's error."""
    tasks = [asyncio.ensure_future(receiving), asyncio.ensure_future(ended.wait())]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN)
    for task in done:
        task.result()


if __name__ == "__main__":
    sys.exit(main())

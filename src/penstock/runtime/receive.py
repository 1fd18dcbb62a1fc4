"""The process of a receiving source: everything that arrives goes into its journal.

Run with `python -m penstock.runtime.receive`: standard input has the pickled source and ends when
the process is to end; standard output has a line `ready` whenever what is sent is received, and
then the error that ended it. Whoever starts it may die at any time.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
import threading
from collections.abc import Coroutine
from typing import Any

from penstock.core.errors import Bug, PenstockError, encode
from penstock.journal import Journal
from penstock.sdk import ReceivingSource

READY = "ready"
CANCEL_AGAIN = 8.0
"""Seconds after which a receiver that was cancelled is cancelled once more: in Python 3.11
`asyncio.wait_for` may swallow it. Longer than any connector takes to leave."""


def main() -> int:
    """Receives until standard input ends; the exit code is 0 then, and 1 after an error."""
    source = pickle.load(sys.stdin.buffer)
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


async def _receive(source: ReceivingSource[Any]) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def await_end() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=await_end, daemon=True).start()
    with source.journal() as journal:
        threading.Thread(target=_tell, args=(journal,), daemon=True).start()
        await either(source.receive(journal), ended)


def _tell(journal: Journal) -> None:
    journal.ready.wait()
    print(READY, flush=True)


async def either(receiving: Coroutine[Any, Any, None], ended: asyncio.Event) -> None:
    """Until one of them is done; the other is cancelled, and what it raises passes."""
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

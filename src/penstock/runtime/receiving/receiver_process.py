"""Process of receiving sources: appends all received messages to their journals.

Run with `python -m penstock.runtime.receiving.receiver_process`: standard input carries the list
of pickled sources, which share a receiver, and its end requests a stop. Standard output carries a
line `ready` when the sources receive, `caught-up` when the journals have the backlog of the system,
and then the error of the process, if any. The parent may end at any time.
"""

from __future__ import annotations

import asyncio
import pickle
import resource
import sys
import threading
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack, suppress
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
    sources = pickle.load(sys.stdin.buffer)
    bound_log(sources[0].directory / LOG)
    _raise_file_limit()
    try:
        asyncio.run(_receive(sources))
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


async def _receive(sources: Sequence[ReceivingSource[Any]]) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def await_end() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=await_end, daemon=True).start()
    with ExitStack() as stack:
        journals = [stack.enter_context(source.journal()) for source in sources]
        ready = [journal.ready for journal in journals]
        caught_up = [journal.caught_up for journal in journals]
        for arguments in ((ready, READY, sources), (caught_up, CAUGHT_UP)):
            threading.Thread(target=_report, args=arguments, daemon=True).start()
        received = sources[0].receive_shared(list(zip(sources, journals, strict=True)))
        await await_first(received, ended)


def _report(
    events: Sequence[threading.Event], line: str, begun: Sequence[ReceivingSource[Any]] = ()
) -> None:
    """Prints a line after all events, and records the beginning of sources before."""
    for event in events:
        event.wait()
    for source in begun:
        source.record_beginning()
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

"""What Spark starts in place of Python: asks the warm process for a child and becomes its shadow.

Run as a script by an isolated Python without `site`, on every start of a worker, so it imports
nothing that is not already there. Without a warm process it becomes the plain interpreter.
"""

import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket
from marshal import dumps

STARTED = b"+"


def ask(address: str, arguments: list[str]) -> int | None:
    """The exit status of the child, once it has ended; None when there was none."""
    request = dumps((arguments, os.getcwd(), dict(os.environb)))  # noqa: PTH109
    standard = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1, 2))
    try:
        line = socket(AF_UNIX, SOCK_STREAM)
        line.connect(address)
        line.sendmsg([len(request).to_bytes(4)], [(SOL_SOCKET, SCM_RIGHTS, standard)])
        line.sendall(request)
        if line.recv(1) != STARTED:
            return None
    except OSError:
        return None
    try:
        answer = line.recv(1)
    except OSError:
        answer = b""
    return answer[0] if answer else 1


if __name__ == "__main__":
    address, *arguments = sys.argv[1:]
    status = ask(address, arguments) if arguments[:1] == ["-m"] else None
    if status is None:
        os.execv(sys.executable, [sys.executable, *arguments])
    os._exit(status)

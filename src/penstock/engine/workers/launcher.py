"""Program that Spark starts as Python: requests a forked worker and waits for its end.

An isolated Python without `site` runs this script at every start of a worker, so it imports only
built-in modules. Without a warm process the script executes the plain interpreter.
"""

import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket
from marshal import dumps

STARTED = b"+"


def run_forked(address: str, arguments: list[str]) -> int | None:
    """Runs a worker forked from the warm process. Returns its exit status; None without a fork."""
    request = dumps((arguments, os.getcwd(), dict(os.environb)))  # noqa: PTH109
    descriptors = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1, 2))
    try:
        connection = socket(AF_UNIX, SOCK_STREAM)
        connection.connect(address)
        connection.sendmsg([len(request).to_bytes(4)], [(SOL_SOCKET, SCM_RIGHTS, descriptors)])
        connection.sendall(request)
        if connection.recv(1) != STARTED:
            return None
    except OSError:
        return None
    try:
        status = connection.recv(1)
    except OSError:
        status = b""
    return status[0] if status else 1


if __name__ == "__main__":
    address, *arguments = sys.argv[1:]
    status = run_forked(address, arguments) if arguments[:1] == ["-m"] else None
    if status is None:
        os.execv(sys.executable, [sys.executable, *arguments])
    os._exit(status)

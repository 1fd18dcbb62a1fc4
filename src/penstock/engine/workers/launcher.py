"""Program that Spark starts as Python: requests a forked worker, and becomes a shell until its end.

An isolated Python without `site` runs this script at every start of a worker, so it imports only
built-in modules. Without a warm process the script executes the plain interpreter.
"""

import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket
from marshal import dumps

STARTED = b"+"
_CONNECTION = 3
_WAIT = f'read -r status <&{_CONNECTION}; exit "${{status:-1}}"'


def run_forked(address: str, arguments: list[str]) -> None:
    """Runs a worker forked from the warm process, and ends with its status. Returns without a fork.

    The wait is in a shell, which has less than a tenth of the memory of Python.
    """
    request = dumps((arguments, os.getcwd(), dict(os.environb)))  # noqa: PTH109
    descriptors = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1, 2))
    try:
        connection = socket(AF_UNIX, SOCK_STREAM)
        connection.connect(address)
        connection.sendmsg([len(request).to_bytes(4)], [(SOL_SOCKET, SCM_RIGHTS, descriptors)])
        connection.sendall(request)
        if connection.recv(1) != STARTED:
            return
    except OSError:
        return
    os.dup2(connection.fileno(), _CONNECTION)
    os.set_inheritable(_CONNECTION, True)
    os.execv("/bin/sh", ["sh", "-c", _WAIT])


if __name__ == "__main__":
    address, *arguments = sys.argv[1:]
    if arguments[:1] == ["-m"]:
        run_forked(address, arguments)
    os.execv(sys.executable, [sys.executable, *arguments])

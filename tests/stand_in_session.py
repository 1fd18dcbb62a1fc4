"""Stand-in for a worker with a Spark session: the same lines, without Spark.

The first node of a preview decides: `hang` (until it is cancelled), `deaf` (until it is killed),
`greedy` (a child has 400 MB), `crash`, `fail`, or any other name, whose rows have the text and the
ID of the process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

GREEDY = "kept = bytearray(b'x' * 400_000_000); import time; time.sleep(60)"


def main() -> None:
    cancelled = threading.Event()
    threading.Thread(target=read, args=(cancelled,), daemon=True).start()
    while True:
        time.sleep(1)


def read(cancelled: threading.Event) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("cancel"):
            cancelled.set()
        else:
            cancelled.clear()
            threading.Thread(target=work, args=(request, cancelled), daemon=True).start()
    os._exit(0)


def work(request: dict[str, Any], cancelled: threading.Event) -> None:
    (node, *_) = request["arguments"].get("nodes", ["rows"])
    send("started", {"bounded": True})
    if node == "crash":
        os._exit(1)
    if node == "greedy":
        subprocess.Popen([sys.executable, "-c", GREEDY], start_new_session=True).wait()
    if node == "deaf":
        time.sleep(60)
    if node == "hang":
        cancelled.wait(60)
    if node == "fail":
        send("failed", {"errors": [{"code": "made-up", "message": "made up"}], "status": 400})
    else:
        columns = [{"name": "text", "type": "STRING"}, {"name": "process", "type": "INT"}]
        row = [request["text"], str(os.getpid())]
        send("rows", {"node": node, "columns": columns, "rows": [row]})
        send("done", {"reason": "cancelled" if cancelled.is_set() else "end"})
    send("end", {})


def send(event: str, facts: dict[str, Any]) -> None:
    print(json.dumps({"event": event, "facts": facts}), flush=True)


if __name__ == "__main__":
    main()

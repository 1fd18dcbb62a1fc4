"""Time of the requests of an editor about a file of 300 lines.

    ./dev bench language [--json] [--lines N] [--rounds N]

Each figure is the median of the rounds in a warm process, in milliseconds. Each round has another
text, as after a key: `complete` is the proposal of a column in a query.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import options

from penstock.language import service
from penstock.language.document import Document

FILE = Path("/nowhere/bench.yaml")
PART = """\
  part{0}:
    type: sql
    sql: |
      SELECT carrier, dest, count(*) AS flights, avg(dep_delay) AS delay
      FROM flights LEFT JOIN airlines USING (carrier)
      WHERE dep_delay > {0}
      GROUP BY carrier, dest
"""
HEAD = """\
sources:
  flights: {type: files, path: x, schema: "carrier STRING, dest STRING, dep_delay INT"}
  airlines: {type: files, path: y, schema: "carrier STRING, name STRING", static: true}
transforms:
"""
SINK = "  out{0}: {{type: files, from: part{0}, path: out{0}, format: json}}\n"


def text_of(lines: int, version: int) -> str:
    """Returns a valid pipeline of about this number of lines."""
    parts = range((lines - 5) // 8)
    transforms, sinks = (PART.format(i) for i in parts), (SINK.format(i) for i in parts)
    return f"# {version}\n{HEAD}{''.join(transforms)}sinks:\n{''.join(sinks)}"


def measure(lines: int, rounds: int) -> dict[str, float]:
    """Returns the median milliseconds of each request."""
    requests: dict[str, Callable[[Document, int], object]] = {
        "diagnose": lambda document, _: service.diagnose(document),
        "complete": lambda document, index: service.complete(document, document.position(index)),
        "hover": lambda document, index: service.hover(document, document.position(index)),
        "symbols": lambda document, _: service.symbols(document),
    }
    found: dict[str, list[float]] = {name: [] for name in requests}
    for version in range(rounds + 1):
        text = text_of(lines, version)
        document, index = Document(FILE, text), text.rindex("dep_delay > ") + 3
        for name, request in requests.items():
            began = time.perf_counter()
            request(document, index)
            if version:  # the first round loads modules
                found[name].append((time.perf_counter() - began) * 1000)
    return {name: round(statistics.median(times), 1) for name, times in found.items()}


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    found = measure(arguments.lines, arguments.rounds)
    if arguments.json:
        print(json.dumps(found))
        return
    for name, milliseconds in found.items():
        print(f"{name:10} {milliseconds:6.1f} ms")


if __name__ == "__main__":
    main()

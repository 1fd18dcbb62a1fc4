"""Files of other tools, run by Penstock.

    ./dev bench dialects [--json] [--rows N] [--messages N] [--runs N]

The first file of ArkFlow reads JSON lines, filters them by SQL and prints the rows as JSON. The
second one generates messages, each a batch with a query of its own. A run is a whole process.
ArkFlow itself is not measured: its process does not end with its input, and package registries have
no program of it later than the crate of version 0.1.0, which is built from source.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from measure import Cost, best, measure

FILE = """\
streams:
  - input: {type: file, input_type: {type: json, path: rows.json}}
    pipeline:
      processors:
        - {type: sql, query: "SELECT id, upper(name) AS name, v * 2 AS v FROM flow WHERE v > 50"}
        - {type: arrow_to_json}
    output: {type: stdout}
"""
MESSAGES = """\
streams:
  - input: {type: generate, context: '{"id": 1, "name": "abc", "v": 60}', interval: 1us,
      count: COUNT}
    pipeline:
      processors:
        - {type: json_to_arrow}
        - {type: sql, query: "SELECT id, upper(name) AS name, v * 2 AS v FROM flow WHERE v > 50"}
        - {type: arrow_to_json}
    output: {type: drop}
"""


def write_rows(directory: Path, rows: int) -> None:
    """Writes the input."""
    with (directory / "rows.json").open("w") as file:
        for number in range(rows):
            row = {"id": number, "name": f"name-{number % 1000}", "v": number % 100}
            file.write(json.dumps(row) + "\n")


def run(directory: Path, text: str, runs: int) -> Cost:
    """Returns the least cost of several runs of a file."""
    (directory / "stream.yaml").write_text(text)
    command = [sys.executable, "-m", "penstock", "run", "stream.yaml", "--fresh", "--quiet"]
    return best(runs, lambda: measure(command, cwd=directory))


def report(costs: Mapping[str, tuple[int, Cost]]) -> None:
    """Prints a table."""
    print("| file | rows/s | seconds | CPU seconds |\n|---|---|---|---|")
    for name, (rows, cost) in costs.items():
        print(f"| {name} | {rows / cost.wall:,.0f} | {cost.wall:.1f} | {cost.cpu:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        directory = Path(scratch)
        write_rows(directory, options.rows)
        messages = MESSAGES.replace("COUNT", str(options.messages))
        costs = {
            "arkflow: rows of a file": (options.rows, run(directory, FILE, options.runs)),
            "arkflow: messages": (options.messages, run(directory, messages, options.runs)),
        }
    if options.json:
        print(json.dumps({name: {"rows": rows, **asdict(c)} for name, (rows, c) in costs.items()}))
    else:
        report(costs)


if __name__ == "__main__":
    main()

"""The queries of Nexmark from topic to topic, beside the same queries in Flink SQL.

    ./dev bench nexmark [--json] [--events N] [--queries q0,q5] [--engines NAME,NAME] [--repeat N]
                        [--batches N]

Persons, auctions and bids are JSON in topics of four partitions, 10,000 events for each second of
event time, of which 92 % are bids. Penstock runs the scripts of examples/nexmark with these topics
as sources and sinks, Flink the queries in bench/peers/nexmark_queries.py: PyFlink, state on the
heap, a checkpoint every five seconds, small batches as in the benchmark's own settings, as many
threads as cores. Flink writes rows that change by `upsert-kafka`, Penstock with `mode: upsert`.

Each engine is one process. Its Java is warm: an engine runs q0 once before it is measured, and then
the queries one after the other, the other engine not running. Of several runs of a query the least
time and the least CPU count: the first run includes the compilation of the query. So the figures
have no start of a process, which favours neither: Penstock's start is shorter than Flink's. The CPU
seconds of a query are those of all processes of the engine, without the broker. Both engines read
what is in the topics. Penstock reads few large batches of it, Flink single rows: where rows change,
Penstock writes fewer changes. With `--batches N` Penstock reads an Nth of each topic in a batch:
the cost of a batch is that of a run divided by its batches.

The numbers of rows of both results must be equal; of rows that change, those that remain. State is
the most that an engine kept on disk: Penstock after each batch, Flink with each checkpoint (a query
that takes less than five seconds has none).

q10 writes files. q12 takes the time of arrival from a column, so that its result is the same in all
runs. q14 calls a function in Python in both engines.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import clicks_data
import installs
import nexmark_data
import options
from measure import Failed
from nexmark_data import TOPICS
from serving import Serving, Work

from servers.kafka import Kafka

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
EXAMPLE = HERE.parent / "examples" / "nexmark"
QUERIES = tuple(f"q{number}" for number in range(23))
KEYED = ("q4", "q6", "q9", "q15", "q16", "q17", "q18", "q19")
"""Queries whose results change."""
TO_FILES = "q10"
WARM_UP = "q0"
SOURCE = "connector = 'files', path = 'data/{topic}', format = 'parquet'"
SINK = re.compile(r"connector = 'files', path = 'out/q\d+', format = '\w+'")


@dataclass(frozen=True)
class Place:
    """The broker, and the directories of an engine's own files and of the side input.

    `limits` are the most rows of each topic that Penstock reads in a batch.
    """

    brokers: str
    directory: Path
    side_input: Path
    limits: Mapping[str, int]

    @property
    def state(self) -> Path:
        return self.directory / "state"


@dataclass(frozen=True)
class Engine:
    """The command of an engine, and the line that asks it for a query and a target."""

    command: Callable[[Place], list[str]]
    line: Callable[[Place, str, str], str]


def penstock(place: Place) -> list[str]:
    return [sys.executable, str(PEERS / "nexmark_penstock.py")]


def script(place: Place, query: str, target: str) -> str:
    """Writes the script of a query with topics in place of files. Returns its path."""
    text = (EXAMPLE / f"{query}.sql").read_text()
    kafka = f"connector = 'kafka', brokers = '{place.brokers}', format = 'json'"
    for topic in TOPICS:
        limit = f", max_records = '{place.limits[topic]}'" if place.limits else ""
        source = f"{kafka}, topic = '{topic}'{limit}"
        text = text.replace(SOURCE.format(topic=topic), source)
    if query == TO_FILES:
        text = text.replace(f"out/{query}", target)
    else:
        text = SINK.sub(f"{kafka}, topic = '{target}'", text)
    text = text.replace("data/side_input", str(place.side_input / "parquet"))
    # The partitions of a topic are not read in the order of arrival.
    text = text.replace(
        "WATERMARK FOR arrival AS arrival",
        "WATERMARK FOR arrival AS arrival - INTERVAL '4 seconds'",
    )
    path = place.state / f"{Path(target).name}.sql"
    path.write_text(text)
    return str(path)


def flink(place: Place) -> list[str]:
    installs.java()
    home = installs.flink()
    return [
        str(home / "venv" / "bin" / "python"), str(PEERS / "nexmark_flink.py"), place.brokers,
        str(home), str(place.state), str(place.side_input / "csv"), str(os.cpu_count() or 1),
    ]  # fmt: skip


ENGINES = {
    "penstock": Engine(penstock, script),
    "flink": Engine(flink, lambda place, query, target: f"{query} {target}"),
}


@dataclass(frozen=True)
class Ran:
    """A query that an engine ran, with the rows of its result and the number of its batches."""

    work: Work
    rows: int
    batches: int = 0


def once(engine: Engine, process: Serving, place: Place, query: str, target: str) -> Ran:
    """Runs a query and counts the rows of its result."""
    if query == TO_FILES:
        files = place.directory / target
        work = process.work(engine.line(place, query, str(files)), place.state)
        return Ran(work, nexmark_data.count_lines(files))
    clicks_data.create(place.brokers, target)
    try:
        work = process.work(engine.line(place, query, target), place.state)
        keyed = query in KEYED
        rows = nexmark_data.count_rows(place.brokers, target, keyed=keyed)
        return Ran(work, rows, batches(place.state))
    finally:
        clicks_data.delete(place.brokers, target)
        shutil.rmtree(place.state / ".penstock", ignore_errors=True)


def batch_limits(counts: Mapping[str, int], parts: int) -> dict[str, int]:
    """Returns the most rows of each topic in one of so many batches; no limits for 0."""
    return {topic: -(-count // parts) for topic, count in counts.items()} if parts else {}


def batches(state: Path) -> int:
    """Returns the number of batches that Penstock has committed."""
    commits = state.glob(".penstock/*/checkpoints/*/commits/[0-9]*")
    return max((int(entry.name) for entry in commits), default=-1) + 1


def least(runs: list[Ran]) -> Ran:
    """Returns the least costs of the runs of a query."""
    works = [each.work for each in runs]
    work = Work(
        min(work.seconds for work in works),
        min(work.cpu for work in works),
        max(work.state_mb for work in works),
    )
    return Ran(work, runs[-1].rows, runs[-1].batches)


def run(
    name: str, place: Place, queries: list[str], repeat: int, failed: dict[str, str]
) -> dict[str, Ran]:
    """Runs the queries in one process of an engine."""
    engine, found = ENGINES[name], {}
    place.state.mkdir(parents=True)
    with Serving(engine.command(place), place.directory, os.environ) as process:
        once(engine, process, place, WARM_UP, f"{name}-warm-up")
        for query in queries:
            print(f"{name} {query} ...", file=sys.stderr)
            try:
                targets = [f"{name}-{query}-{number}" for number in range(repeat)]
                runs = [once(engine, process, place, query, target) for target in targets]
                found[query] = least(runs)
            except Failed as failure:
                process.check()
                failed[query] = shorten(str(failure), 300)
    return found


def compare(
    events: int, engines: list[str], queries: list[str], repeat: int, parts: int
) -> dict[str, Any]:
    ran: dict[str, dict[str, Ran]] = {}
    failed: dict[str, dict[str, str]] = {name: {} for name in engines}
    skipped = {}
    with Kafka(heavy=True) as broker, tempfile.TemporaryDirectory(prefix="penstock-bench-") as path:
        print(f"{events:,} events ...", file=sys.stderr)
        side_input = Path(path, "side_input")
        nexmark_data.write_side_input(side_input)
        counts = nexmark_data.fill(broker.address, events)
        limits = batch_limits(counts, parts)
        for name in engines:
            place = Place(broker.address, Path(path, name), side_input, limits)
            try:
                ran[name] = run(name, place, queries, repeat, failed[name])
            except installs.Unavailable as why:
                skipped[name] = shorten(str(why.msg), 300)
    return {
        "events": events,
        "engines": {
            name: {
                query: {
                    **asdict(each.work), "rows": each.rows, "batches": each.batches,
                    "events_per_second": events / each.work.seconds,
                }
                for query, each in queries_.items()
            }
            for name, queries_ in ran.items()
        },
        "failed": failed,
        "skipped": skipped,
        "ratio_cpu": ratios(ran),
        "differ": differences(ran),
    }  # fmt: skip


def both(ran: dict[str, dict[str, Ran]]) -> Iterator[tuple[str, Ran, Ran]]:
    """Yields the queries that both engines ran."""
    others = ran.get("flink", {})
    for query, own in ran.get("penstock", {}).items():
        if query in others:
            yield query, own, others[query]


def ratios(ran: dict[str, dict[str, Ran]]) -> dict[str, float]:
    """Returns how many times Penstock's CPU seconds Flink takes."""
    return {query: other.work.cpu / own.work.cpu for query, own, other in both(ran)}


def differences(ran: dict[str, dict[str, Ran]]) -> dict[str, tuple[int, int]]:
    """Returns the numbers of rows of the queries whose results differ."""
    return {
        query: (own.rows, other.rows) for query, own, other in both(ran) if own.rows != other.rows
    }


def table(result: dict[str, Any]) -> Iterator[str]:
    names = list(result["engines"])
    yield f"{result['events']:,} events"
    yield f"{'':6}{'rows':>10}" + "".join(f"{name:^38}" for name in names)
    heads = f"{'events/s':>12}{'seconds':>8}{'CPU s':>8}{'state MB':>10}"
    yield f"{'':16}" + heads * len(names) + f"{'ratio':>8}"
    for query in QUERIES:
        found = [result["engines"][name].get(query) for name in names]
        if not any(found):
            continue
        rows = next(each["rows"] for each in found if each)
        ratio = result["ratio_cpu"].get(query)
        yield (
            f"{query:6}{rows:>10,}"
            + "".join(map(cells, found))
            + (f"{ratio:>8.2f}" if ratio else "")
        )
    for name, why in result["skipped"].items():
        yield f"{name} left out: {why}"
    for name, queries in result["failed"].items():
        for query, why in queries.items():
            yield f"{name} {query} failed: {why}"
    for query, rows in result["differ"].items():
        yield f"{query}: the results have {rows[0]:,} and {rows[1]:,} rows"
    for query, run_ in result["engines"].get("penstock", {}).items():
        if run_["batches"] > 1:
            cost = 1000 * run_["cpu"] / run_["batches"]
            yield f"penstock {query}: {run_['batches']} batches, {cost:,.0f} CPU ms each"
    if result["ratio_cpu"]:
        ahead = sum(ratio > 1 for ratio in result["ratio_cpu"].values())
        yield f"Flink takes more CPU seconds in {ahead} of {len(result['ratio_cpu'])} queries."


def cells(run: dict[str, float] | None) -> str:
    if run is None:
        return f"{'-':>12}{'-':>8}{'-':>8}{'-':>10}"
    return (
        f"{run['events_per_second']:>12,.0f}{run['seconds']:>8.1f}{run['cpu']:>8.1f}"
        f"{run['state_mb']:>10.1f}"
    )


def chosen(text: str) -> list[str]:
    """Returns the queries that an option names."""
    names = text.split(",")
    for name in names:
        if name not in QUERIES:
            raise ValueError(f"no query {name!r}")
    return names


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--queries", type=chosen, default=list(QUERIES), metavar="q0,q5")
    options.add_engines(parser, ENGINES)
    parser.add_argument("--repeat", type=int, default=1, help="number of runs; the best one counts")
    parser.add_argument(
        "--batches", type=int, default=0, help="batches of Penstock; by default all that is there"
    )
    given = parser.parse_args()
    try:
        result = compare(given.events, given.engines, given.queries, given.repeat, given.batches)
    except Failed as failure:
        raise SystemExit(f"bench: {failure}") from None
    print(json.dumps(result) if given.json else "\n".join(table(result)))


if __name__ == "__main__":
    main()

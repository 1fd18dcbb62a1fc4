"""examples/clicks-kafka, run as the tutorial says, against the same sums done at once in Python."""

from __future__ import annotations

import base64
import csv
import json
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from blocks import Reader, blocks
from confluent_kafka import IsolationLevel

from command_line import CommandLine
from servers.kafka import Kafka

pytestmark = [pytest.mark.docs, pytest.mark.spark]

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
EXAMPLE = ROOT / "examples" / "clicks-kafka"
LINES = (EXAMPLE / "data" / "clicks.jsonl").read_bytes().splitlines()
BAD = {57: "not-json", 143: "wrong-type", 268: "wrong-type", 391: "not-an-object", 512: "not-json"}
"""The lines that are no clicks, by number."""


@dataclass(frozen=True)
class Ran:
    """What runs of the example left behind."""

    broker: Kafka
    printed: str


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, cli: CommandLine) -> Iterator[Ran]:
    where = tmp_path_factory.mktemp("clicks")
    left = shutil.ignore_patterns(".penstock")
    shutil.copytree(EXAMPLE, where / "examples" / "clicks-kafka", ignore=left)
    chosen = [
        replace(block, options={})
        for block in blocks(TUTORIAL)
        if Path(__file__).name in block.options.get("skip", "")
    ]
    assert chosen
    with Kafka() as broker, closing(Reader(where, cli, {"KAFKA": broker.address})) as reader:
        printed = [reader.perform(block) for block in chosen]
        yield Ran(broker, printed[-1])


def clicks() -> list[dict[str, Any]]:
    good = [json.loads(line) for number, line in enumerate(LINES, 1) if number not in BAD]
    return [{**click, "at": datetime.fromisoformat(click["at"])} for click in good]


def visits() -> list[dict[str, Any]]:
    """The clicks of people, with what clicks.yaml derives; a null is not written."""
    with (EXAMPLE / "data" / "pages.csv").open() as file:
        pages = {row.pop("page"): row for row in csv.DictReader(file)}
    return [
        {
            **{name: click[name] for name in ("id", "user", "at", "page")},
            **pages.get(click["page"], {"area": "elsewhere"}),
            "seconds": click["millis"] / 1000,
            "slow": click["millis"] > 500,
        }
        for click in clicks()
        if click["agent"] != "robot"
    ]


def minutes() -> dict[tuple[datetime, str], tuple[int, int, float]]:
    """Visits, slow ones and mean seconds of the minutes that are complete."""
    groups = defaultdict(list)
    for visit in visits():
        groups[visit["at"].replace(second=0, microsecond=0), visit["area"]].append(visit)
    watermark = max(click["at"] for click in clicks()) - timedelta(minutes=1)
    return {
        (minute, area): (
            len(group),
            sum(visit["slow"] for visit in group),
            pytest.approx(sum(visit["seconds"] for visit in group) / len(group), abs=0.000_501),
        )
        for (minute, area), group in groups.items()
        if minute + timedelta(minutes=1) <= watermark
    }


def test_visits(ran: Ran) -> None:
    found = ran.broker.messages("visits")
    rows = [json.loads(message.value()) for message in found]
    for row in rows:
        row["at"] = datetime.fromisoformat(row["at"])
    assert sorted(rows, key=lambda row: row["id"]) == visits()
    for message, row in zip(found, rows, strict=True):
        assert message.key() == row["user"].encode()
        assert message.headers() == [("area", row["area"].encode())]


def test_a_users_visits_keep_their_order(ran: Ran) -> None:
    orders = defaultdict(list)
    for message in ran.broker.messages("visits"):
        orders[message.key()].append((message.partition(), json.loads(message.value())["id"]))
    for order in orders.values():
        assert order == sorted(order)
        assert len({partition for partition, _ in order}) == 1


def test_minutes_are_there_once(ran: Ran) -> None:
    rows = [json.loads(message.value()) for message in ran.broker.messages("visits-by-minute")]
    found = {
        (datetime.fromisoformat(row["minute"]), row["area"]): (
            row["visits"], row["slow"], row["mean_seconds"],
        )
        for row in rows
    }  # fmt: skip
    assert found == minutes()
    assert len(rows) == len(found) == 25


def test_dead_letters_say_what_and_where(ran: Ran) -> None:
    dead_letters = [json.loads(message.value()) for message in ran.broker.messages("clicks-dead")]
    found = {base64.b64decode(letter["payload"]): letter["code"] for letter in dead_letters}
    assert found == {LINES[number - 1]: code for number, code in BAD.items()}
    assert len(dead_letters) == len(BAD)
    places = {
        (f"clicks:{message.partition()}", message.offset()): message.value()
        for message in ran.broker.messages("clicks")
    }
    for letter in dead_letters:
        place = letter["origin"], letter["position"]
        assert places[place] == base64.b64decode(letter["payload"])


def test_nothing_is_behind(ran: Ran) -> None:
    at = ran.broker.committed("penstock.clicks.clicks", "clicks")
    ends = {each: ran.broker.end("clicks", IsolationLevel.READ_COMMITTED, each) for each in at}
    assert at == ends
    assert sum(ends.values()) == len(LINES)


def test_the_result_is_printed_in_order(ran: Ran) -> None:
    lines = [line for line in ran.printed.splitlines() if line.startswith("2024-")]
    expected = [
        (f"{minute:%Y-%m-%d %H:%M:%S}", area, str(counts[0]))
        for (minute, area), counts in sorted(minutes().items())
    ]
    assert [(line[:19], *line[19:].split()[:2]) for line in lines] == expected
    assert "the shop is closed for a minute" in ran.printed

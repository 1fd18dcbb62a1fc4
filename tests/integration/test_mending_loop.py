"""The loop of a user in the console: write, preview, run, find a dead letter, mend, replay."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from command_line import CommandLine
from server_console import Console, OpenConsole
from web_console import listening, log_in, serious_findings, type_text

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from penstock.server.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.usefixtures("built_console")]
TEXT = """
name: prices
sources:
  orders: {type: files, path: "orders/*.json", format: json, schema: "id INT, price STRING"}
transforms:
  priced: {type: sql, sql: "SELECT id, CAST(price AS DOUBLE) AS price FROM orders"}
sinks:
  out: {type: files, from: priced, path: out, format: json}
tests:
  - name: prices are numbers
    given: {orders: [{id: 1, price: "2.5"}]}
    expect: {out: [{id: 1, price: 3.5}]}
"""
MENDED = TEXT.replace("CAST(price AS DOUBLE)", "coalesce(TRY_CAST(price AS DOUBLE), 0D)")


@pytest.fixture
def server_settings(server_settings: Settings) -> Settings:
    """Settings of a server whose sessions are real. The test runs the pipeline itself."""
    real = type(server_settings)(server_settings.directory, server_settings.data)
    return replace(server_settings, session_command=real.session_command)


def test_write_run_mend_and_replay(
    open_console: OpenConsole, cli: CommandLine, page: Page, server_settings: Settings
) -> None:
    console = open_console()
    directory = server_settings.created / "prices"
    (directory / "orders").mkdir(parents=True)
    (directory / "orders" / "1.json").write_text('{"id": 1, "price": "2.5"}\n')
    findings: list[str] = []
    with listening(console) as address:
        log_in(page, address, console)
        _create(page, findings)
        _preview_and_test(page, findings)
        _run(console, cli, directory)
        _mend(page, findings)
        console.post(f"pipelines/{console.id('shop')}/stop")
    rows = [
        json.loads(line) for file in (directory / "out").glob("*.jsonl") for line in file.open()
    ]
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "price": 2.5}, {"id": 2, "price": 0.0},
    ]  # fmt: skip
    assert findings == []


def _create(page: Page, findings: list[str]) -> None:
    page.get_by_role("link", name="New pipeline").click()
    page.get_by_role("button", name=re.compile("Made-up rows")).click()
    page.get_by_text("Valid", exact=True).wait_for()
    assert page.get_by_label("Name").input_value() == "generate"
    findings += serious_findings(page)
    page.get_by_label("Name").fill("prices")
    type_text(page, TEXT.replace("format: json}", "format: jsom}"))
    page.locator(".cm-lintRange-error").first.wait_for()
    assert page.get_by_role("button", name="Preview", exact=True).is_disabled()
    page.locator(".cm-content").press("Control+.")
    page.get_by_text("Valid", exact=True).wait_for()


def _preview_and_test(page: Page, findings: list[str]) -> None:
    page.get_by_role("button", name="Preview", exact=True).click()
    page.get_by_text("1 row of out").wait_for()
    rows = page.get_by_role("region", name="Rows of out")
    assert rows.get_by_role("cell").all_inner_texts() == ["1", "2.5"]
    page.get_by_role("tab", name="Tests").click()
    page.get_by_role("button", name="Run the tests").click()
    page.get_by_text("1 failed, 0 passed").wait_for()
    assert "price: 3.5" in page.get_by_role("list", name="Test cases").inner_text()
    findings += serious_findings(page)
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("heading", name="prices").wait_for()


def _run(console: Console, cli: CommandLine, directory: Path) -> None:
    """Runs the pipeline to the end of its input, with one record that fails, as in a terminal."""
    (directory / "orders" / "2.json").write_text('{"id": 2, "price": "free"}\n')
    with ThreadPoolExecutor(1) as thread:  # the browser has an event loop in this one
        done = thread.submit(cli, directory, "run", "prices.yaml", "--quiet").result()
    assert done.returncode == 0, done.stderr
    console.await_health("complete", name="prices")


def _mend(page: Page, findings: list[str]) -> None:
    page.get_by_role("link", name=re.compile("Dead letters")).click()
    page.locator("summary").click()
    assert "CAST(price AS DOUBLE)" in page.get_by_label("Lines of priced").inner_text()
    findings += serious_findings(page)
    page.get_by_role("link", name="Mend and test on this letter").click()
    page.get_by_text("Valid", exact=True).wait_for()
    _try(page, "The record still fails")
    type_text(page, MENDED)
    page.get_by_text("Valid", exact=True).wait_for()
    _try(page, "The record passes")
    findings += serious_findings(page)
    page.get_by_role("button", name="Apply", exact=True).click()
    page.get_by_text("Applied as version 2").wait_for()
    page.get_by_role("link", name="To the dead letters").click()
    page.get_by_role("button", name="Replay 1").click()
    page.get_by_role("button", name="Replay", exact=True).click()
    page.get_by_text("1 dead letter replayed").wait_for()


def _try(page: Page, outcome: str) -> None:
    page.get_by_role("button", name="Test on this letter").click()
    page.get_by_text(outcome, exact=True).wait_for()

"""The tutorial of the console, step by step: write, preview, run, find a dead letter, mend, replay.

The texts are those of the page, and each word of it in bold is clicked. With
PENSTOCK_UPDATE_PICTURES=1 the test takes the pictures of the page.
"""

from __future__ import annotations

import json
import os
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
    from playwright.sync_api import Page, ViewportSize

    from penstock.server.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.usefixtures("built_console")]
PHONE: ViewportSize = {"width": 390, "height": 844}
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
DOCS = Path(__file__).resolve().parents[2] / "docs"


class Tutorial:
    """The page of the tutorial in a browser, and its texts."""

    def __init__(self, page: Page) -> None:
        self.page, self.findings = page, list[str]()
        text = (DOCS / "console-tutorial.md").read_text()
        self.pipeline, line = re.findall(r"```yaml[^\n]*\n(.*?)```", text, re.DOTALL)
        self.mended = re.sub(r"(?m)^  priced: .*\n", lambda _: line, self.pipeline)
        self.records = re.findall(r"echo '(.*)' > orders/\d\.json", text)
        self.steps = re.findall(r"\*\*(.+?)\*\*", text)
        self.pictures = {*re.findall(r"images/console-tutorial-(\w+)\.png", text)}

    def click(self, name: str, role: str = "button") -> None:
        """Clicks the next word in bold of the page."""
        assert self.steps.pop(0) == name
        exact = role == "button" and name != "Made-up rows"
        words = name if exact else re.compile(rf"^{name}\b")
        self.page.get_by_role(role, name=words, exact=exact).click()  # type: ignore[arg-type]

    def picture(self, name: str) -> None:
        """Checks the accessibility and the width of the page, and takes its picture if wished."""
        self.findings += serious_findings(self.page)
        self.page.set_viewport_size(PHONE)
        wide = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, f"{name} is {wide} pixels too wide for a phone"
        self.page.set_viewport_size(DESKTOP)
        self.pictures.remove(name)
        file = DOCS / "images" / f"console-tutorial-{name}.png"
        if os.environ.get("PENSTOCK_UPDATE_PICTURES") == "1":
            self.page.screenshot(path=file)
        assert file.is_file()


@pytest.fixture
def server_settings(server_settings: Settings) -> Settings:
    """Settings of a server whose sessions are real. The test runs the pipeline itself."""
    real = type(server_settings)(server_settings.directory, server_settings.data)
    return replace(server_settings, session_command=real.session_command)


def test_write_run_mend_and_replay(
    open_console: OpenConsole, cli: CommandLine, page: Page, server_settings: Settings
) -> None:
    console, tutorial = open_console(), Tutorial(page)
    directory = server_settings.created / "prices"
    (directory / "orders").mkdir(parents=True)
    (directory / "orders" / "1.json").write_text(f"{tutorial.records[0]}\n")
    with listening(console) as address:
        log_in(page, address, console)
        _create(tutorial)
        _preview_and_test(tutorial)
        _run(tutorial, console, cli, directory)
        _mend(tutorial)
        console.post(f"pipelines/{console.id('shop')}/stop")
    rows = [
        json.loads(line) for file in (directory / "out").glob("*.jsonl") for line in file.open()
    ]
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "price": 2.5}, {"id": 2, "price": 0.0},
    ]  # fmt: skip
    assert (tutorial.steps, tutorial.pictures, tutorial.findings) == ([], set(), [])


def _create(tutorial: Tutorial) -> None:
    page = tutorial.page
    tutorial.click("New pipeline", "link")
    tutorial.click("Made-up rows")
    page.get_by_text("Valid", exact=True).wait_for()
    assert page.get_by_label("Name").input_value() == "generate"
    tutorial.findings += serious_findings(page)
    page.get_by_label("Name").fill("prices")
    type_text(page, tutorial.pipeline.replace("format: json,", "format: jsom,"))
    page.locator(".cm-lintRange-error").first.wait_for()
    for name in ("Preview", "Create"):
        assert page.get_by_role("button", name=name, exact=True).is_disabled()
    page.locator(".cm-content").press("Control+.")
    page.get_by_text("Valid", exact=True).wait_for()


def _preview_and_test(tutorial: Tutorial) -> None:
    page = tutorial.page
    tutorial.click("Preview")
    page.get_by_text("1 row of out").wait_for()
    rows = page.get_by_role("region", name="Rows of out")
    assert rows.get_by_role("cell").all_inner_texts() == ["1", "2.5"]
    tutorial.picture("preview")
    tutorial.click("Tests", "tab")
    tutorial.click("Run the tests")
    page.get_by_text("1 failed, 0 passed").wait_for()
    assert "price: 3.5" in page.get_by_role("list", name="Test cases").inner_text()
    _find_wrong_column(tutorial)
    tutorial.click("Create")
    page.get_by_role("heading", name="prices").wait_for()


def _find_wrong_column(tutorial: Tutorial) -> None:
    """Creates nothing from a text with a wrong column, which only a check with Spark finds."""
    page = tutorial.page
    type_text(page, tutorial.pipeline.replace("CAST(price", "CAST(prise"))
    page.get_by_text("Valid", exact=True).wait_for()
    page.get_by_role("button", name="Create").click()
    page.get_by_text("Not created").wait_for()
    assert page.locator(".cm-lintRange-error").all_inner_texts() == ["prise"]
    assert 'did you mean "price"?' in page.get_by_role("list", name="Problems").inner_text()
    page.get_by_text("1 error", exact=True).wait_for()
    tutorial.findings += serious_findings(page)
    page.locator(".cm-content").press("Control+.")
    page.get_by_text("Valid", exact=True).wait_for()
    page.get_by_text("Not created").wait_for(state="detached")


def _run(tutorial: Tutorial, console: Console, cli: CommandLine, directory: Path) -> None:
    """Runs the pipeline as in a terminal, because the runs of the server are made up."""
    assert tutorial.steps.pop(0) == "Start"
    (directory / "orders" / "2.json").write_text(f"{tutorial.records[1]}\n")
    with ThreadPoolExecutor(1) as thread:  # the browser has an event loop in this one
        done = thread.submit(cli, directory, "run", "prices.yaml", "--quiet").result()
    assert done.returncode == 0, done.stderr
    console.await_health("complete", name="prices")


def _mend(tutorial: Tutorial) -> None:
    page = tutorial.page
    tutorial.click("Dead letters", "link")
    page.locator("summary").click()
    assert "CAST(price AS DOUBLE)" in page.get_by_label("Lines of priced").inner_text()
    tutorial.picture("letter")
    tutorial.click("Mend and test on this letter", "link")
    page.get_by_text("Valid", exact=True).wait_for()
    tutorial.click("Test on this letter")
    page.get_by_text("The record still fails", exact=True).wait_for()
    type_text(page, tutorial.mended)
    page.get_by_text("Valid", exact=True).wait_for()
    page.get_by_role("button", name="Test on this letter").click()
    page.get_by_text("The record passes", exact=True).wait_for()
    tutorial.picture("passes")
    tutorial.click("Apply")
    page.get_by_text("Applied as version 2").wait_for()
    tutorial.click("To the dead letters", "link")
    page.get_by_role("checkbox", name=re.compile("^Select (?!these)")).check()
    tutorial.click("Replay 1")
    tutorial.click("Replay")
    page.get_by_text("1 dead letter replayed").wait_for()

"""The web console in a browser: the first minutes of a user, rights, and a lost connection."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from server_console import Console, OpenConsole, add_pipeline, wait_for
from web_console import PASSWORD, listening, log_in, serious_findings, type_text

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("built_console")]


@pytest.fixture
def console(open_console: OpenConsole, pipeline_directory: Path) -> Console:
    """A server with the pipeline `shop`, which runs, and `cafe`, which fails."""
    add_pipeline(pipeline_directory, "cafe", "fail 2")
    console = open_console()
    for name in ("cafe", "shop"):
        console.post(f"pipelines/{console.id(name)}/start")
    console.await_health("failed", name="cafe")
    return console


def test_the_first_minutes(console: Console, page: Page, pipeline_directory: Path) -> None:
    file = pipeline_directory / "cafe" / "cafe.yaml"
    original = file.read_text()
    findings: list[str] = []
    with listening(console) as address:
        log_in(page, address, console)

        row = page.get_by_role("row").nth(1)
        row.get_by_text("failed").wait_for()
        assert "cafe" in row.inner_text()
        assert "made up" in row.inner_text()
        wait_for(lambda: page.title() == "(1) Pipelines · Penstock", page.title)
        findings += serious_findings(page)

        page.get_by_role("link", name="cafe", exact=True).click()
        page.get_by_text("made-up").first.wait_for()
        findings += serious_findings(page)

        page.get_by_role("link", name="Editor").click()
        type_text(page, original.replace("generate", "generat").replace("path: out", "path: later"))
        page.locator(".cm-lintRange-error").first.wait_for()
        assert page.locator(".cm-lintRange-error").all_inner_texts() == ["generat"]
        assert page.get_by_role("button", name="Apply").is_disabled()
        findings += serious_findings(page)
        page.locator(".cm-content").press("Control+.")
        page.get_by_text("Valid", exact=True).wait_for()
        page.get_by_label("Note of the version").fill("another path")
        page.get_by_role("button", name="Apply").click()
        page.get_by_text("Applied as version 2").wait_for()
        assert file.read_text() == original.replace("path: out", "path: later")

        page.get_by_role("link", name="Versions").click()
        page.get_by_role("button", name=re.compile("v1")).click()
        page.get_by_role("button", name="Roll back to version 1").click()
        page.get_by_role("button", name="Roll back", exact=True).click()
        page.get_by_text("Rolled back: version 3").wait_for()
        assert file.read_text() == original
        findings += serious_findings(page)

        page.emulate_media(color_scheme="dark")
        for tab in ("Runs", "Logs", "Dead letters"):
            page.get_by_role("link", name=tab).first.click()
            page.locator(".surface").first.wait_for()
            findings += serious_findings(page)
    assert findings == []


def test_rights_and_a_lost_connection(console: Console, page: Page) -> None:
    user = {"name": "ann", "rights": ["view"], "password": PASSWORD}
    console.post("users", user, status=201)
    with listening(console) as address:
        page.goto(f"{address}/pipelines/{console.id()}/editor")
        page.get_by_label("Name").fill("ann")
        page.get_by_role("textbox", name="Password").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        page.get_by_text("the name or the password is wrong").wait_for()
        assert serious_findings(page) == []
        page.get_by_role("textbox", name="Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()

        page.get_by_text("Read only").wait_for()
        assert page.url.endswith("/editor"), "the login leads to the page that was asked for"
        assert page.get_by_role("button", name=re.compile("Stop|Apply")).count() == 0
        assert page.get_by_role("link", name=re.compile("Logs|Users|Audit")).count() == 0
        page.goto(f"{address}/audit")
        page.get_by_text("Not permitted").wait_for()
        page.goto(address)
        page.get_by_role("link", name="shop", exact=True).wait_for()
    page.get_by_text("Disconnected").wait_for()
    assert page.get_by_role("link", name="shop", exact=True).is_visible(), "values remain"


def test_no_address_leads_elsewhere(console: Console, page: Page) -> None:
    """The console works under the CSP, and loads nothing from other servers."""
    requested: set[str] = set()
    violations: list[str] = []
    page.on("request", lambda request: requested.add(request.url))
    page.on("console", lambda line: violations.append(line.text) if line.type == "error" else None)
    with listening(console) as address:
        log_in(page, address, console)
        page.get_by_role("link", name="shop", exact=True).click()
        page.get_by_role("button", name="orders").first.wait_for()
    assert [url for url in requested if not url.startswith(address)] == []
    assert [text for text in violations if "Content Security Policy" in text] == []

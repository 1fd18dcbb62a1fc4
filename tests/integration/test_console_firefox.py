"""The web console in Firefox: every page, the tabs in both themes, and the first hour."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from made_letters import made_letters
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.state.directory import StateDirectory
from server_console import Console, OpenConsole, add_pipeline
from servers.browser import firefox
from web_console import PAGES, ROOT, console_addresses, listening, log_in

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

    from penstock.server.settings import Settings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("built_console", "built_documentation", "static_checks"),
]
PREPARATION = """
document.addEventListener("securitypolicyviolation", (event) =>
    console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
addEventListener("input", (event) => event.target._valueTracker?.setValue(""), true);
"""
"""Reports violations. React ignores a value that a program sets, as Playwright does in Firefox."""
EXCESS_WIDTH = """async ([path, theme]) => {
    const frame = () => new Promise(requestAnimationFrame);
    const root = document.documentElement;
    if (path) history.pushState(null, "", path);
    if (root.dataset.mantineColorScheme !== theme) dispatchEvent(new StorageEvent("storage", {
        key: "mantine-color-scheme-value", newValue: theme, storageArea: localStorage}));
    const end = Date.now() + 60_000;
    do {
        await frame();
        await frame();
    } while (document.querySelector('[aria-label="Loading"]') && Date.now() < end);
    return [Math.max(0, root.scrollWidth - window.innerWidth), root.dataset.mantineColorScheme];
}"""
"""Opens a page of the console in a theme. Returns the excess width, and the theme."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with firefox() as started:
        yield started


@pytest.fixture
def faults(page: Page) -> list[str]:
    """Errors in the console of the browser, and requests that failed. The test expects none."""
    found: list[str] = []

    def fail(request: Request) -> None:
        if "ABORTED" not in (request.failure or ""):  # of streams, by the next page
            found.append(f"{request.failure}: {request.url}")

    page.add_init_script(PREPARATION)
    page.on("console", lambda line: found.append(line.text) if line.type == "error" else None)
    page.on("requestfailed", fail)
    page.on("response", lambda answer: answer.ok or found.append(f"{answer.status} {answer.url}"))
    return found


def test_every_page_and_the_first_hour(
    open_console: OpenConsole, page: Page, faults: list[str], server_settings: Settings
) -> None:
    add_pipeline(server_settings.directory, "cafe", "fail 2")
    console = open_console()
    for name in ("cafe", "shop"):
        console.post(f"pipelines/{console.id(name)}/start")
    console.await_health("failed", name="cafe")
    console.await_health("running")
    token = console.post(f"pipelines/{console.id()}/shares", {"days": 1}, status=201)["token"]
    with listening(console) as address:
        log_in(page, address, console)
        faults.clear()  # the first request has no session
        _spend_an_hour(console, page, server_settings.created / "visits")
        assert faults == []
        pages, shop = console_addresses(console.id("cafe")), console_addresses(console.id("shop"))
        for theme, paths in (("light", pages), ("dark", shop[len(PAGES) :])):
            for path in paths:
                assert page.evaluate(EXCESS_WIDTH, [path, theme]) == [0, theme], path
                page.locator("h1, h2, .surface").first.wait_for()
                assert faults == [], path
        page.goto(f"{address}/shared#token={token}")
        page.get_by_text("Shared by admin, read only").wait_for()
        assert page.evaluate(EXCESS_WIDTH, [None, "dark"]) == [0, "dark"]
        page.goto(f"{address}/docs/")
        page.get_by_role("heading").first.wait_for()
    assert faults == []


def _spend_an_hour(console: Console, page: Page, directory: Path) -> None:
    page.get_by_role("link", name="New pipeline").click()
    page.get_by_role("button", name="Made-up rows").click()
    _write_and_mend(page)
    page.get_by_label("Name").fill("visits")
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("heading", name="visits").wait_for()
    _run(console, page, directory)
    page.get_by_role("link", name="Dead letters").click()
    page.locator("summary").first.click()
    page.get_by_text("Mend and test on this letter").wait_for()


def test_all_addresses_are_opened() -> None:
    text = (ROOT / "console" / "src" / "App.tsx").read_text()
    routes = {*re.findall(r'path="(/[^":]*)', text)} - {"/login"}
    opened = {
        re.sub(r"(?<=.)[?#].*|(?<=/pipelines/).*", "", each) for each in console_addresses("1")
    }
    assert routes - {"/shared"} <= opened


def _write_and_mend(page: Page) -> None:
    """Breaks a word by keys, completes it, breaks another one, and applies its fix."""
    valid = page.get_by_text("Valid", exact=True)
    valid.wait_for()
    page.locator(".cm-line", has_text=re.compile("^ +type: filter$")).click()
    page.keyboard.press("End")
    page.keyboard.press("Backspace")
    _await_mark(page, "filte")
    assert page.get_by_role("button", name="Create", exact=True).is_disabled()
    page.keyboard.press("Control+Space")
    page.locator(".cm-tooltip-autocomplete li", has_text="filter").first.click()
    valid.wait_for()
    page.locator(".cm-line", has_text=re.compile("^ +from: visits$")).click()
    page.keyboard.press("End")
    page.keyboard.press("Backspace")
    _await_mark(page, "visit")
    page.locator(".cm-content").press("Control+.")
    valid.wait_for()


def _await_mark(page: Page, text: str) -> None:
    page.locator(".cm-lintRange-error", has_text=re.compile(f"^{text}$")).wait_for()


def _run(console: Console, page: Page, directory: Path) -> None:
    """Starts the pipeline, whose run is made up and leaves a dead letter."""
    (directory / "behavior").write_text("run")
    page.get_by_role("button", name="Start", exact=True).click()
    console.await_health("running", "idle", name="visits")
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    state = StateDirectory(directory / ".penstock" / "visits")
    DeadLetters(state.dead_letters).put("made", made_letters(1, "visits"))

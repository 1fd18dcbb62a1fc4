"""The tasks of an operator in the console, by keyboard alone, each within its number of steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.app import plan
from penstock.plan.fingerprint import fingerprint
from penstock.runtime.state.directory import StateDirectory
from server_console import (
    PIPELINE,
    Console,
    add_pipeline,
    opening_consoles,
    stand_in_settings,
    wait_for,
)
from web_console import listening, log_in

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from penstock.server.workers.pool import WorkerPool

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("built_console", "static_checks")]
PIPELINES = 200
FOCUSED = """() => {
  const focused = document.activeElement;
  const name = focused?.getAttribute("aria-label") || focused?.textContent || "";
  return name.trim();
}"""


class Keyboard:
    """A user without a mouse. `steps` are the controls that were activated, and shortcuts."""

    def __init__(self, page: Page) -> None:
        self._page, self.steps = page, 0

    def go_to(self, name: str) -> None:
        """Moves the focus to a control by Tab."""
        for _ in range(120):
            if str(self._page.evaluate(FOCUSED)).startswith(name):
                return
            self._page.keyboard.press("Tab")
        raise AssertionError(f"{name} has no focus by Tab")

    def activate(self, name: str) -> None:
        self.go_to(name)
        self.press("Enter")

    def press(self, key: str) -> None:
        self._page.keyboard.press(key)
        self.steps += 1


@pytest.fixture(scope="module")
def pipeline_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("steps")
    for number in range(PIPELINES - 2):
        (directory / f"pipeline-{number:03}.yaml").write_text(
            PIPELINE.format(name=f"pipeline-{number:03}")
        )
    add_pipeline(directory)
    add_pipeline(directory, "cafe", "fail 2")
    return directory


@pytest.fixture(scope="module")
def console(pipeline_directory: Path, server_workers: WorkerPool) -> Iterator[Console]:
    settings = stand_in_settings(pipeline_directory)
    with opening_consoles(settings, server_workers) as open_:
        console = open_()
        wait_for(lambda: len(console.get("pipelines")) == PIPELINES, lambda: "not all are read")
        for name in ("cafe", "shop"):
            console.post(f"pipelines/{console.id(name)}/start")
        console.await_health("failed", name="cafe")
        console.await_health("running")
        yield console


def test_tasks_of_an_operator(console: Console, page: Page, pipeline_directory: Path) -> None:
    file = pipeline_directory / "shop" / "shop.yaml"
    original = file.read_text()
    with listening(console) as address:
        log_in(page, address, console)
        keyboard = Keyboard(page)

        row = page.get_by_role("row").nth(1)  # no step: the failed one of 200, and its cause
        row.get_by_text("failed").wait_for()
        assert row.get_by_role("link", name="cafe", exact=True).count() == 1
        assert "made up" in row.inner_text()

        page.goto(f"{address}/pipelines/{console.id()}")
        page.get_by_role("heading", name="shop").wait_for()
        keyboard.activate("Editor")
        page.locator(".cm-content").wait_for()
        keyboard.go_to("Text of shop")
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(original.replace("generate", "generat"))
        page.locator(".cm-lintRange-error").first.wait_for()
        keyboard.steps = 0
        keyboard.press("Control+.")
        page.get_by_text("Valid", exact=True).wait_for()
        assert keyboard.steps == 1, "the fix of a wrong name"

        page.keyboard.press("Control+a")
        page.keyboard.insert_text(original.replace("path: out", "path: later"))
        page.get_by_text("Valid", exact=True).wait_for()
        keyboard.steps = 0
        keyboard.activate("Apply and restart")
        page.get_by_text("Applied as version 2").wait_for()
        assert keyboard.steps == 1, "a new version"
        assert "later" in file.read_text()

        keyboard.steps = 0
        keyboard.activate("Versions")
        keyboard.activate("Roll back to version 1")
        keyboard.press("Enter")  # the confirmation has the focus
        page.get_by_text("Rolled back: version 3").wait_for()
        assert keyboard.steps == 3, "a roll back"
        assert file.read_text() == original

        state = StateDirectory(pipeline_directory / "shop" / ".penstock" / "shop")
        console.await_health("running")
        state.write("plan.json", fingerprint(plan(file), state.key()))
        keyboard.activate("Editor")
        page.locator(".cm-content").wait_for()
        keyboard.go_to("Text of shop")
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(
            original.replace("type: generate, fields: {id: {type: sequence}}", "type: impulse")
        )
        page.get_by_text("the state does not support the change").first.wait_for()  # no step
        keyboard.steps = 0
        keyboard.activate("Apply and restart")
        page.get_by_text("Not applied; the pipeline is unchanged").wait_for()
        assert keyboard.steps == 1, "a rejected change"
        assert file.read_text() == original
        assert console.health()["state"] in ("running", "idle"), "nothing has stopped"

        keyboard.steps = 0
        keyboard.activate("Stop")
        page.keyboard.press("Enter")
        page.get_by_text("stopped", exact=True).first.wait_for()
        assert keyboard.steps == 1, "a stop, which is confirmed once"

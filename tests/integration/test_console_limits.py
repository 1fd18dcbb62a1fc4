"""The web console in a browser: changes without their state, files with errors, a phone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.app import plan
from penstock.plan.fingerprint import fingerprint
from penstock.runtime.state.directory import StateDirectory
from server_console import PIPELINE, Console
from web_console import PASSWORD, listening, log_in, serious_findings, type_text

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from servers.redis import Redis

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("built_console", "static_checks"),
]


def test_a_change_that_the_state_does_not_support(
    console: Console, page: Page, pipeline_directory: Path
) -> None:
    """It can be previewed, tested and applied with a reset of the state."""
    file = pipeline_directory / "shop" / "shop.yaml"
    state = StateDirectory(pipeline_directory / "shop" / ".penstock" / "shop")
    state.write("plan.json", fingerprint(plan(file), state.key()))
    text = file.read_text().replace(
        "type: generate, fields: {id: {type: sequence}}", "type: impulse"
    )
    with listening(console) as address:
        log_in(page, address, console)
        page.goto(f"{address}/pipelines/{console.id()}/editor")
        page.locator(".cm-content").wait_for()
        type_text(page, text)
        page.get_by_text("the state does not support the change").first.wait_for()
        assert page.get_by_role("button", name="Preview", exact=True).is_enabled()
        page.get_by_role("button", name="Apply").click()
        page.get_by_text("Not applied; the pipeline is unchanged").wait_for()
        assert "impulse" not in file.read_text()
        page.get_by_label("Or reset the state").fill("shop")
        page.get_by_role("button", name="Reset the state and apply").click()
        page.get_by_text("Applied as version 2").wait_for()
        assert file.read_text() == text

        file.write_text(text.replace("impulse", "impuls"))
        page.get_by_text("The file has errors. Correct them before the start.").wait_for()
        assert page.get_by_role("button", name="Start", exact=True).is_disabled()


def test_lists_and_long_names_on_a_phone(console: Console, page: Page, redis: Redis) -> None:
    name = "-".join(["department"] * 5)
    connections: dict[str, tuple[str, dict[str, Any], list[str]]] = {
        name: ("nats", {}, ["Names"]), "cache": ("redis", redis.login, ["Names"]),
        "events": ("kafka", {"brokers": "kafka.invalid:9092"}, ["Topics"]),
        "hooks": ("http", {}, []), "shop-db": ("sqlite", {"path": "shop.db"}, ["Tables"]),
    }  # fmt: skip
    for each, (type_, options, _) in connections.items():
        body = {"name": each, "type": type_, "options": options}
        console.post("connections", body, status=201)
    with redis.client() as client:
        client.rpush("waiting", "1")
    user = {"name": name, "rights": ["view", "data", "operate"], "password": PASSWORD}
    console.post("users", user, status=201)
    page.set_viewport_size({"width": 390, "height": 844})
    with listening(console) as address:
        log_in(page, address, console)
        page.goto(f"{address}/users")
        row = page.get_by_role("row").filter(has_text=name)
        for part in (row.get_by_text("view, data, operate"), row.get_by_role("button").last):
            box = part.bounding_box()
            assert box is not None and box["x"] + box["width"] <= 390
        assert serious_findings(page) == []
        page.goto(f"{address}/connections")
        for each, (_, _, titles) in connections.items():
            row = page.get_by_role("row").filter(has_text=each)
            row.get_by_role("button", name="Edit").wait_for()
            buttons = row.get_by_role("button").all()
            assert [each.inner_text() for each in buttons] == ["Edit", *titles, "Test", "Delete"]
            assert len({(box := each.bounding_box()) and box["y"] for each in buttons}) == 1
        page.get_by_role("row").filter(has_text="cache").get_by_role("button", name="Names").click()
        page.get_by_role("radiogroup", name="Option").get_by_text("list").click()
        page.get_by_label("Names for list").get_by_text("waiting").wait_for()
        assert serious_findings(page) == []


def test_a_new_pipeline_on_a_phone(console: Console, page: Page) -> None:
    """The templates are one row that scrolls, and the text is on the first screen."""
    page.set_viewport_size({"width": 390, "height": 844})
    with listening(console) as address:
        log_in(page, address, console)
        page.goto(f"{address}/new")
        templates = page.get_by_role("group", name="Templates").get_by_role("button")
        templates.last.click()
        page.get_by_text("Valid", exact=True).wait_for()
        boxes = [box for each in templates.all() if (box := each.bounding_box())]
        assert len(boxes) > 5
        assert len({box["y"] for box in boxes}) == 1
        assert 0 <= boxes[-1]["x"] <= 390 - boxes[-1]["width"], "it is scrolled into view"
        text = page.locator(".cm-content").bounding_box()
        assert text is not None and text["y"] < 844 * 0.65
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert serious_findings(page) == []


def test_a_pipeline_that_is_deleted_elsewhere(console: Console, page: Page) -> None:
    """Its page says so, and a text that is not applied becomes a new pipeline."""
    text = PIPELINE.format(name="gone")
    id = console.post("pipelines", {"name": "gone", "text": text}, status=201)["id"]
    with listening(console) as address:
        log_in(page, address, console)
        page.goto(f"{address}/pipelines/{id}/editor")
        page.locator(".cm-content").wait_for()
        type_text(page, text + "# of a user")
        page.get_by_text("Valid", exact=True).wait_for()
        assert console.client.delete(f"/api/v1/pipelines/{id}").status_code == 204
        page.get_by_text("The pipeline gone was deleted").wait_for()
        assert page.get_by_role("button", name="Start").count() == 0
        assert serious_findings(page) == []
        page.once("dialog", lambda dialog: dialog.accept())  # leaves the page with its text
        page.get_by_role("link", name="New pipeline from your text").click()
        page.locator(".cm-content").get_by_text("# of a user").wait_for()


def test_a_new_text_survives_the_end_of_the_session(console: Console, page: Page) -> None:
    user = {"name": "eve", "rights": ["view", "edit"], "password": PASSWORD}
    console.post("users", user, status=201)
    with listening(console) as address:

        def log_in_again() -> None:
            page.get_by_label("Name").fill("eve")
            page.get_by_role("textbox", name="Password").fill(PASSWORD)
            page.get_by_role("button", name="Log in").click()

        page.goto(f"{address}/new")
        log_in_again()
        page.locator(".cm-content").wait_for()
        type_text(page, PIPELINE.format(name="kept"))
        page.get_by_text("Valid", exact=True).wait_for()
        answer = console.client.patch("/api/v1/users/eve", json={"password": PASSWORD})
        assert answer.status_code == 204  # ends the sessions of the user
        page.get_by_role("button", name="Log in").wait_for()
        log_in_again()
        page.locator(".cm-content").get_by_text("name: kept").wait_for()

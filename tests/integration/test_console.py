"""The web console in a browser: the first minutes of a user, rights, and a lost connection."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from made_letters import made_letters
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.state.directory import StateDirectory
from server_console import Console, add_pipeline, opening_consoles, stand_in_settings, wait_for
from web_console import PASSWORD, listening, log_in, serious_findings, type_text

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from penstock.server.workers.pool import WorkerPool

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("built_console", "static_checks")]
SMALL = "name: x\nsources: {a: {type: impulse}}\nsinks: {b: {type: blackhole, from: a}}\n"
REORDERED = """\
name: cafe
sinks:
  out: {type: files, from: orders, path: out, format: json}
sources:
  orders:
    fields: {id: {type: sequence}}
    type: gen"""
"""A pipeline whose last word is not finished."""


@pytest.fixture(scope="module")
def pipeline_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("console")
    add_pipeline(directory)
    add_pipeline(directory, "cafe", "fail 2")
    return directory


@pytest.fixture(scope="module")
def console(pipeline_directory: Path, server_workers: WorkerPool) -> Iterator[Console]:
    """A server with the pipeline `shop`, which runs, and `cafe`, which fails."""
    with opening_consoles(stand_in_settings(pipeline_directory), server_workers) as open_:
        console = open_()
        for name in ("cafe", "shop"):
            console.post(f"pipelines/{console.id(name)}/start")
        console.await_health("failed", name="cafe")
        yield console


def test_the_first_minutes(console: Console, page: Page, pipeline_directory: Path) -> None:
    """Also the console works under the CSP, and loads nothing from other servers."""
    requested: list[str] = []
    violations: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.on("console", lambda line: violations.append(line.text) if line.type == "error" else None)
    file = pipeline_directory / "cafe" / "cafe.yaml"
    state = StateDirectory(pipeline_directory / "cafe" / ".penstock" / "cafe")
    DeadLetters(state.dead_letters).put("made", made_letters(120, "orders"))
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
        _complete(page)
        type_text(page, original.replace("generate", "generat").replace("path: out", "path: later"))
        page.locator(".cm-lintRange-error").first.wait_for()
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
        page.get_by_text("newest 100 of 120").wait_for()
        page.get_by_role("button", name="Earlier dead letters").click()
        page.get_by_role("button", name="Earlier dead letters").wait_for(state="detached")
        assert page.locator("summary").count() == 120
    assert findings == []
    assert [url for url in requested if not url.startswith(address)] == []
    streams = [url for url in requested if url.endswith("/api/v1/events")]
    assert len(streams) == 1, "the stream has ended, as with the session before the password"
    assert [text for text in violations if "Content Security Policy" in text] == []


def test_connections_functions_alerts_and_links(
    console: Console, page: Page, pipeline_directory: Path
) -> None:
    with closing(sqlite3.connect(pipeline_directory / "shop.db")) as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, password TEXT)")
    secret = {
        "url": "postgresql://db.invalid/x",
        "auth": {"username": "ann", "password": "hunter2222"},
    }
    body = {"name": "stored", "type": "postgres", "options": secret}
    console.post("connections", body, status=201)
    findings: list[str] = []
    with listening(console) as address:
        log_in(page, address, console)

        page.get_by_role("link", name="Connections").click()
        page.get_by_role("button", name="New connection").click()
        page.get_by_label("Name").fill("shop-db")
        page.get_by_label("Connector").select_option("sqlite")
        page.get_by_label("path").fill("shop.db")
        findings += serious_findings(page)
        page.get_by_role("button", name="Create").click()
        row = page.get_by_role("row").filter(has_text="shop-db")
        row.get_by_role("button", name="Test").click()
        row.get_by_text("The connection works").wait_for()
        row.get_by_label("Name of the table").fill("orders")
        row.get_by_role("button", name="Check access").click()
        steps = page.get_by_role("table", name="Steps of shop-db")
        steps.get_by_role("row").filter(has_text="log in").get_by_text("ok", exact=True).wait_for()
        steps.get_by_text("no error before a run").first.wait_for()
        findings += serious_findings(page)
        row.get_by_role("button", name="Close access").click()
        row.get_by_role("button", name="Tables").click()
        page.get_by_label("orders").check()
        page.get_by_role("button", name="Show as sources").click()
        page.get_by_label("Sources of the tables").get_by_text("connection: shop-db").wait_for()
        findings += serious_findings(page)
        page.get_by_role("link", name="New pipeline").click()
        page.get_by_text("Valid", exact=True).wait_for()
        page.go_back()
        page.get_by_role("row").filter(has_text="stored").get_by_role("button", name="Edit").click()
        page.get_by_placeholder("set; leave empty to keep it").wait_for()
        assert "hunter2222" not in page.content()

        page.get_by_role("link", name="Pipelines").first.click()
        page.get_by_role("link", name="New pipeline").click()
        page.locator(".cm-content").wait_for()
        type_text(page, "sources:\n  a:\n    connection: shop-db\n    table: ")
        page.keyboard.type("o")
        page.locator(".cm-tooltip-autocomplete li", has_text="table of shop-db").click()
        page.locator(".cm-line", has_text="table: orders").wait_for()
        page.get_by_role("link", name="Functions").click()
        page.get_by_role("button", name="New functions").click()
        page.get_by_label("Name of the file").fill("names")
        page.get_by_label("Python").fill("def initials(:")
        page.get_by_label("Problems").get_by_role("button").wait_for()
        page.get_by_label("Python").fill(
            "from penstock import udf\n@udf\ndef f(x: int) -> int:\n  return x"
        )
        page.get_by_text("f(x BIGINT) RETURNS BIGINT").wait_for()
        page.get_by_role("button", name="Register").click()
        page.get_by_text("names.py").wait_for()
        findings += serious_findings(page)

        page.get_by_role("link", name="Alerts").click()
        page.get_by_label("Name of the rule").fill("failures")
        page.get_by_role("button", name="Create rule").click()
        page.get_by_role("cell", name="failures").first.wait_for()
        rules = page.get_by_role("region", name="List of rules")
        disk = rules.get_by_role("row").filter(has_text="disk")
        disk.get_by_role("button", name="Change").click()
        page.get_by_label("Threshold (%)").fill("5")
        page.get_by_role("button", name="Save rule").click()
        disk.get_by_text("below 5 %").wait_for()
        disk.get_by_role("button", name="Delete").click()
        disk.get_by_role("group", name="Delete").get_by_role("button", name="Delete").click()
        disk.wait_for(state="detached")
        rules.get_by_role("row").filter(has_text="restarts more than").wait_for()
        console.server.watcher.evaluate()
        history = page.get_by_role("region", name="History")
        history.get_by_text("open", exact=True).first.wait_for()  # also of a ready rule
        page.emulate_media(color_scheme="dark")
        findings += serious_findings(page)

        page.goto(f"{address}/pipelines/{console.id()}")
        page.get_by_role("button", name="Share").click()
        page.get_by_role("button", name="Create link").click()
        link = page.locator("code").filter(has_text="/shared#token=").inner_text()
        page.context.clear_cookies()
        page.goto(link)
        page.get_by_text("Shared by admin, read only").wait_for()
        page.get_by_role("cell", name="orders").first.wait_for()
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


def test_charts(console: Console, page: Page) -> None:
    """Charts by pointer, by keyboard and as tables, over the time range of the address."""
    id, history = console.id(), console.server.parts.history
    console.await_health("running", "idle")
    wait_for(lambda: history._snapshots().get(id), lambda: "no metrics")
    history.record(time.time())
    findings: list[str] = []
    with listening(console) as address:
        log_in(page, address, console)
        page.get_by_role("link", name="shop", exact=True).click()
        page.get_by_role("link", name="Metrics").click()
        chart = page.get_by_role("img", name="How far behind are the sources? In records.")
        chart.press("End")
        values = page.get_by_role("status").filter(has_text="7 records")
        values.wait_for()
        chart.press("Escape")
        values.wait_for(state="detached")
        page.get_by_role("button", name="Table: How far behind are the sources?").press("Enter")
        table = page.get_by_role("region", name="Table: How far behind are the sources?")
        assert table.get_by_role("cell").first.inner_text() == "7"
        row = page.get_by_role("region", name="Batches").get_by_role("row").nth(1)
        assert row.inner_text().split("\t")[2:5] == ["1", "3", "1.5 s"]
        findings += serious_findings(page)
        page.get_by_text("30 d", exact=True).click()
        page.get_by_text("one value per 4 h").wait_for()
        page.reload()
        page.get_by_text("one value per 4 h").wait_for()
        page.emulate_media(color_scheme="dark")
        findings += serious_findings(page)
    assert findings == []


@pytest.mark.usefixtures("built_documentation")
def test_many_pipelines_and_a_large_graph(
    console: Console, page: Page, pipeline_directory: Path
) -> None:
    """A long list has rows near the window only, and a large graph its chains collapsed."""
    for number in range(62):
        file = pipeline_directory / f"{'a-long-name-of-a-pipeline-' * 3}{number:02}.yaml"
        file.write_text(SMALL)
    (pipeline_directory / "large.yaml").write_text(_large(24))
    wait_for(lambda: len(console.get("pipelines")) == 65, lambda: str(console.get("pipelines")))
    with listening(console) as address:
        log_in(page, address, console)
        page.get_by_text("65", exact=True).wait_for()
        assert 10 < page.get_by_role("row").count() < 60
        page.keyboard.press("End")
        page.wait_for_function("() => [...document.querySelectorAll('tr[aria-rowindex]')].some("
                               "(row) => row.getAttribute('aria-rowindex') === '66')")  # fmt: skip
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, "long names widen the page"

        page.goto(f"{address}/pipelines/{console.id('large')}")
        page.get_by_role("button", name="24 transforms").wait_for()
        assert page.locator(".react-flow__node").count() == 3
        assert serious_findings(page) == []
        page.get_by_role("button", name="step0").click()
        page.get_by_role("heading", name="step0").wait_for()
        page.get_by_role("button", name="24 transforms").click()
        for name in ("step1", "step17"):
            page.get_by_role("button", name=re.compile(rf"\b{name}\b")).click()
            page.get_by_role("heading", name=name, exact=True).wait_for()
        page.get_by_role("button", name="Collapse chains").click()
        for number in (16, 7):  # the chosen node remains
            page.get_by_role("button", name=f"{number} transforms").wait_for()

        page.goto(f"{address}/docs/reference/errors/")
        page.get_by_role("heading", name="Errors").first.wait_for()


def _large(steps: int) -> str:
    """Returns a pipeline with a chain of transforms."""
    text = "name: large\nsources: {step0: {type: impulse}}\ntransforms:\n"
    for step in range(1, steps + 1):
        text += f"  step{step}: {{type: filter, from: step{step - 1}, where: counter > {step}}}\n"
    return f"{text}sinks: {{out: {{type: blackhole, from: step{steps}}}}}\n"


def _complete(page: Page) -> None:
    """Completes a type while it is typed, and reads its documentation under the pointer."""
    type_text(page, REORDERED)
    page.keyboard.type("e")
    page.locator(".cm-tooltip-autocomplete li", has_text="generate").wait_for()
    page.locator(".cm-completionInfo", has_text="rate").wait_for()
    page.wait_for_timeout(200)  # the editor ignores keys within 75 ms after a list has opened
    page.keyboard.press("Enter")
    page.get_by_text("Valid", exact=True).wait_for()
    page.locator(".cm-line").last.hover(position={"x": 90, "y": 8})
    page.locator(".cm-tooltip-hover", has_text="rate").wait_for()
    page.mouse.move(5, 5)
    page.locator(".cm-tooltip-hover").wait_for(state="detached")

"""Takes pictures of each page of the console, in both themes and at three widths.

    ./dev console --screenshots [DIRECTORY] [--pipelines N]

The pictures are in build/screenshots by default. The server has 200 made-up pipelines, or N of
them, and connections, functions, rules and users with long names. Pages that are wider than their
window are printed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench" / "control_plane"), str(ROOT / "tests")]

from served import Served, serving  # noqa: E402

from servers.browser import chromium  # noqa: E402
from web_console import PAGES, TABS  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WIDTHS = (390, 820, 1440)
THEMES = ("light", "dark")
LONG = "a-name-of-a-whole-department-and-of-its-region-in-the-north-2026"
FUNCTION = "from penstock import udf\n\n\n@udf\ndef whole(x: float) -> int:\n    return int(x)\n"


def fill(served: Served) -> None:
    """Creates connections, functions, rules and users."""
    url = {"url": "postgresql://db.example.com/shop"}
    for name, type_, options in (
        ("shop-db", "postgres", url), (LONG, "kafka", {"brokers": "kafka.example.com:9092"}),
    ):  # fmt: skip
        body = {"name": name, "type": type_, "options": options}
        _send(served, "POST", "connections", body)
    for name in ("numbers", LONG.replace("-", "_")[:60]):
        text = FUNCTION.replace("whole", f"whole_{len(name)}")
        _send(served, "POST", "functions", {"name": name, "text": text})
    rule: dict[str, Any] = {"kind": "failed", "pipelines": None, "channels": []}
    _send(served, "PUT", f"alerts/rules/{LONG[:60]}", rule)
    user = {"name": LONG[:60], "rights": ["view", "data"], "password": "a long password"}
    _send(served, "POST", "users", user)


def _send(served: Served, method: str, path: str, body: Mapping[str, Any]) -> None:
    request = urllib.request.Request(
        f"{served.address}/api/v1/{path}", json.dumps(body).encode(), method=method,
        headers={"Authorization": f"Bearer {served.token}", "Content-Type": "application/json"},
    )  # fmt: skip
    with urllib.request.urlopen(request, timeout=60):
        pass


def addresses(served: Served) -> Mapping[str, str]:
    """Returns the addresses of all pages by the names of their pictures."""
    by_name = {each["name"]: each["id"] for each in served.get("/api/v1/pipelines")}
    found = {"login": "/login"}
    found |= {_name(page or "pipelines"): f"/{page}" for page in PAGES}
    for number in ("-000", "-003"):
        for name, id in by_name.items():
            if name.endswith(number):
                found |= {_name(f"{name}-{tab}"): f"/pipelines/{id}/{tab}" for tab in TABS}
    return found


def take(browser: Browser, served: Served, target: Path) -> None:
    """Takes the pictures of all pages."""
    for theme in THEMES:
        for width in WIDTHS:
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=theme, locale="en-US"
            )
            page = context.new_page()
            page.set_extra_http_headers({"Authorization": f"Bearer {served.token}"})
            for name, address in addresses(served).items():
                page.goto(served.address + address)
                page.wait_for_timeout(700)  # charts and graphs are drawn after the load
                page.screenshot(path=target / f"{name}-{width}-{theme}.png")
                if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
                    print(f"{address} is wider than {width} px")
            context.close()


def _name(address: str) -> str:
    return re.sub(r"[?=/]+", "-", address).strip("-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?", default=ROOT / "build" / "screenshots")
    parser.add_argument("--pipelines", type=int, default=200)
    options = parser.parse_args()
    target: Path = options.directory
    target.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(Path(directory).resolve(), options.pipelines) as served,
        chromium() as browser,
    ):
        fill(served)
        take(browser, served, target)
    print(f"{len(list(target.glob('*.png')))} pictures are in {target}")


if __name__ == "__main__":
    main()

"""Takes pictures of each page of the console, in both themes and at three widths.

    ./dev console --screenshots [DIRECTORY]

The pictures are in build/screenshots by default. The server has 200 made-up pipelines.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench" / "control_plane"), str(ROOT / "tests")]

from served import Served, serving  # noqa: E402

from servers.browser import chromium  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WIDTHS = (390, 820, 1440)
THEMES = ("light", "dark")
TABS = ("graph", "graph?view=list", "editor", "versions", "runs", "logs", "dead-letters")
PAGES = ("", "?q=none", "new", "users", "tokens", "audit", "none")


def addresses(served: Served) -> Mapping[str, str]:
    """Returns the addresses of all pages by the names of their pictures."""
    by_name = {each["name"]: each["id"] for each in served.get("/api/v1/pipelines")}
    found = {"login": "/login"}
    found |= {_name(page or "pipelines"): f"/{page}" for page in PAGES}
    for name, id in (("shop-000", by_name["shop-000"]), ("failed", _failed(by_name))):
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
            context.close()


def _failed(by_name: Mapping[str, str]) -> str:
    return next(id for name, id in by_name.items() if name.endswith("-003"))


def _name(address: str) -> str:
    return address.replace("?", "-").replace("=", "-")


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "screenshots"
    target.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(Path(directory).resolve(), 200) as served,
        chromium() as browser,
    ):
        take(browser, served, target)
    print(f"{len(list(target.glob('*.png')))} pictures are in {target}")


if __name__ == "__main__":
    main()

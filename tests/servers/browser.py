"""Browsers that are driven by Playwright: Debian's Chromium and Firefox, without a window.

The headless shell of Chromium has its engine, and starts and draws for a fifth of the CPU time.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from servers.install import program

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CALM: dict[str, str | float | bool] = {
    "ui.prefersReducedMotion": 1, "browser.startup.page": 0, "dom.ipc.processCount": 1,
    "layout.frame_rate": 20,
    "dom.ipc.processPrelaunch.enabled": False, "fission.autostart": False,
    "media.rdd-process.enabled": False, "media.utility-process.enabled": False,
}  # fmt: skip
"""Preferences of Firefox: no animations, no first page, few processes and frames."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser during the block. Root may run it only without its sandbox."""
    from playwright.sync_api import sync_playwright

    path = program("chromium-headless-shell", "chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def firefox() -> Iterator[Browser]:
    """A Firefox during the block, by WebDriver BiDi; see `bidi.py`."""
    from playwright.sync_api import sync_playwright

    words = (sys.executable, str(Path(__file__).with_name("bidi.py")),
             program("firefox-esr", "firefox-esr"))  # fmt: skip
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        start = Path(directory) / "firefox"
        start.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        start.chmod(0o755)
        browser = playwright.firefox.launch(
            channel="moz-firefox", executable_path=start, firefox_user_prefs=CALM
        )
        yield browser
        browser.close()

"""Prometheus, which scrapes metrics, and `promtool`, which checks their form."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from servers.install import program
from servers.server import Server

_SETTINGS = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: penstock
    authorization: {{credentials_file: {token}}}
    static_configs:
      - targets: ["{target}"]
"""


class Prometheus(Server):
    """The server that scrapes `target`, each second, with a token from a file."""

    name = "prometheus"
    title = "Prometheus 2.42 (Debian 12)"

    def __init__(self, target: str, token: str) -> None:
        super().__init__()
        self._target, self._token = target, token

    def command(self) -> Sequence[str]:
        """With its settings and the token."""
        data = self.directory.path
        settings, token = data / "prometheus.yml", data / "token"
        token.write_text(self._token)
        settings.write_text(_SETTINGS.format(target=self._target, token=token))
        return [
            program("prometheus", "prometheus"), f"--config.file={settings}",
            f"--storage.tsdb.path={data / 'data'}", f"--web.listen-address=127.0.0.1:{self.port}",
        ]  # fmt: skip

    def ready(self) -> None:
        """Asks whether it answers queries."""
        with urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=1):
            pass

    def environment(self) -> Mapping[str, str]:
        """Limits it to one core."""
        return {"GOMAXPROCS": "1"}

    def targets(self) -> list[dict[str, Any]]:
        """Returns what it scrapes, with its health and last error."""
        found: list[dict[str, Any]] = self._get("targets")["activeTargets"]
        return found

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Returns the labels and the present value of each series of an expression."""
        found = self._get("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]

    def _get(self, path: str, **parameters: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urlencode(parameters)}"
        with urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]


def check_metrics(text: str) -> tuple[int, str]:
    """Returns the exit code of `promtool check metrics` and what it prints."""
    command = [program("promtool", "prometheus"), "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr

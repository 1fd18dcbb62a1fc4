"""Settings of a run of Streamling: environment variables, and a file of settings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import SpecError
from penstock.core.known_secrets import remember_secret
from penstock.core.location import Location
from penstock.core.text import did_you_mean
from penstock.spec.dialects.options.reading import Findings
from penstock.spec.dialects.streamling.application import find_setting, setting_names
from penstock.spec.front_end import CHOICE
from penstock.spec.tree.nodes import Interpolated, MappingNode, Node, ScalarNode
from penstock.spec.yaml.parse import read_document

PREFIX = "STREAMLING__"
_FILE = "config"
_SUFFIXES = ("", ".yaml", ".yml", ".json")
_OF_OTHERS = ("sources", "streams", "transforms", "sinks")


@dataclass(frozen=True)
class Setting:
    """A setting. `text` is its value; `written` is the text that the pipeline has for it."""

    text: str
    written: str
    node: Node | None = None


class Settings:
    """The settings: those of the environment before those of the file."""

    def __init__(self, settings: Mapping[str, Setting], where: Location) -> None:
        self._settings, self._where = settings, where

    def find(self, path: str) -> Setting | None:
        """Returns a setting, None if it is not set or empty."""
        setting = self._settings.get(path)
        return setting if setting is not None and setting.text != "" else None

    def text(self, path: str, default: str = "") -> str:
        """Returns the value of a setting."""
        setting = self.find(path)
        return default if setting is None else setting.text

    def written(self, path: str, default: str = "") -> str:
        """Returns the text of a setting in the pipeline: a variable, or its value."""
        setting = self.find(path)
        return default if setting is None else setting.written

    def secret(self, path: str) -> ScalarNode | None:
        """Returns the value of a secret, which `penstock convert` prints as a variable.

        None if it is not set.
        """
        setting = self.find(path)
        if setting is None:
            return None
        variable = f"${{{PREFIX}{path.replace('.', '__').upper()}}}"
        if setting.node is None:
            base = Path.cwd()
            return ScalarNode(variable, variable, variable, self._where, base, False, secret=True)
        remember_secret(setting.text)
        parts = (Interpolated(0, len(setting.text), 0, len(variable)),)
        return ScalarNode(
            setting.text, variable, setting.text, setting.node.location, setting.node.base,
            False, interpolated_parts=parts, secret=True,
        )  # fmt: skip

    def is_true(self, path: str) -> bool:
        """Returns whether a setting is true."""
        return self.text(path).strip().lower() in ("true", "1", "yes")

    def number(self, path: str, default: int | None = None) -> int | None:
        """Returns the number of a setting. Another text is the default."""
        text = self.text(path).strip()
        return int(text) if re.fullmatch(r"\d+", text) else default

    def below(self, path: str) -> dict[str, str]:
        """Returns the settings below a path by their last name."""
        start = f"{path}."
        return {
            name.removeprefix(start): setting.text
            for name, setting in self._settings.items()
            if name.startswith(start)
        }

    def items(self, path: str) -> list[str]:
        """Returns the texts of a list, which a variable has with commas."""
        setting = self.find(path)
        if setting is None:
            return []
        return [text.strip().strip("\"'") for text in setting.text.strip("[]").split(",")]


def read_settings(findings: Findings, where: Location) -> Settings:
    """Returns the settings. Unknown ones are warnings, for variables at `where`."""
    found: dict[str, Setting] = {}
    for path, node in _settings_of_file(findings, where):
        found[path] = Setting(node.written, node.written.replace("${", "$${"), node)
        _check(path, f'"{path}" of the settings', node.location, findings)
    for name, value in os.environ.items():
        if name.startswith(PREFIX):
            path = name.removeprefix(PREFIX).replace("__", ".").lower()
            found[path] = Setting(value, f"${{{name}}}")
            _check(path, f"the environment variable {name}", where, findings)
    return Settings(found, where)


def _settings_of_file(findings: Findings, where: Location) -> Iterator[tuple[str, ScalarNode]]:
    name = CHOICE.get().settings
    path = next((p for s in _SUFFIXES if (p := Path(f"{name or _FILE}{s}")).is_file()), None)
    if path is None:
        if name is not None:
            findings.warn(
                f"there is no file of settings {name}", where, code="missing-file",
                hint="write the name of a YAML or JSON file after --config",
            )  # fmt: skip
        return
    try:
        root = read_document(path).root
    except SpecError as error:
        if error.code == "empty-file":
            return
        raise
    if name is None and any(key in _OF_OTHERS for key in root.names()):
        return
    yield from _flatten(root, "")


def _flatten(node: Node, path: str) -> Iterator[tuple[str, ScalarNode]]:
    if isinstance(node, MappingNode):
        for entry in node.entries:
            name = entry.name.lower()
            yield from _flatten(entry.value, f"{path}.{name}" if path else name)
    elif isinstance(node, ScalarNode):
        yield path, node
    else:
        texts = [item.written for item in node.items if isinstance(item, ScalarNode)]
        text = ",".join(texts)
        yield path, ScalarNode(text, text, text, node.location, node.base)


def _check(path: str, subject: str, where: Location, findings: Findings) -> None:
    setting = find_setting(path)
    if setting is None:
        findings.warn(
            f"{subject} is no setting of Streamling, and is ignored", where,
            code="unknown-option", hint=did_you_mean(path, setting_names()),
        )  # fmt: skip
    elif setting.unsupported:
        findings.error(
            f"{subject} is not supported: {setting.unsupported}", where, code="unsupported-option"
        )
    elif setting.unneeded:
        findings.warn(f"{subject} has no effect: {setting.unneeded}", where)

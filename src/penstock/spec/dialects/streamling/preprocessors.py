"""Preprocessors: functions that change the text of a file before it is read."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

from penstock.core.location import Location
from penstock.core.text import did_you_mean
from penstock.spec.dialects.options.reading import Findings
from penstock.spec.dialects.streamling.settings import Settings

GROUP = "penstock.preprocessors"
"""The entry point group of preprocessors; the name of an entry is the ID of a preprocessor."""
Preprocessor = Callable[[str, Mapping[str, str]], str]
"""A function from the text of a file and options to another text."""


def preprocess(text: str, settings: Settings, findings: Findings, where: Location) -> str:
    """Returns the text after the preprocessors of the settings, in their order."""
    for name in settings.items("plugin.preprocessor_ids"):
        function = _find(name, findings, where)
        if function is None:
            continue
        options = settings.below(f"plugin.preprocessor_options.{name.lower()}")
        try:
            text = function(text, options)
        except Exception as error:
            findings.error(
                f'the preprocessor "{name}" failed: {type(error).__name__}: {error}', where,
                code="function-failed",
            )  # fmt: skip
    return text


def _find(name: str, findings: Findings, where: Location) -> Preprocessor | None:
    """Returns a preprocessor: an entry point, or `MODULE:FUNCTION`."""
    installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    try:
        if name in installed:
            loaded: Preprocessor = installed[name].load()
            return loaded
        module, _, function = name.partition(":")
        if function:
            found: Preprocessor = getattr(importlib.import_module(module), function)
            return found
    except (ImportError, AttributeError) as error:
        findings.error(f'the preprocessor "{name}" cannot be imported: {error}', where)
        return None
    findings.error(
        f'there is no preprocessor "{name}"', where, code="unknown-type",
        hint=did_you_mean(name, list(installed))
        or "write MODULE:FUNCTION, a function in Python from a text and options to a text",
    )  # fmt: skip
    return None

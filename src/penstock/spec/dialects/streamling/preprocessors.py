"""Preprocessors of the settings: functions that change the text of a file before it is read."""

from __future__ import annotations

from pathlib import Path

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.spec.dialects.options.reading import Findings
from penstock.spec.dialects.streamling.settings import Settings
from penstock.spec.preprocessing import run_preprocessors


def preprocess(text: str, path: str, settings: Settings, findings: Findings) -> str:
    """Returns the text of a file after the preprocessors of the settings, in their order."""
    calls = [
        (Location(path, 1, 1), name, settings.below(f"plugin.preprocessor_options.{name.lower()}"))
        for name in settings.items("plugin.preprocessor_ids")
    ]
    try:
        return run_preprocessors(text, path, Path(path).absolute().parent, calls)
    except SpecError as error:
        findings.errors.append(error)
        return text

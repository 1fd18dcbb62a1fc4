"""Loading: the files of a pipeline to its data, by the front end of their language."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from penstock.core.errors import SpecError
from penstock.spec.documents.reading import parsed, read_documents
from penstock.spec.front_end import CHOICE, IGNORED, DocumentFrontEnd, select_front_end
from penstock.spec.parsed import Overrides, ParsedPipeline


def load(
    paths: Sequence[str | Path],
    *,
    overrides: Overrides = (),
    env: Mapping[str, str] | None = None,
) -> ParsedPipeline:
    """Reads the files of one pipeline with their front end. Errors are in the result.

    `env` defaults to the environment of the process.
    """
    names = [str(path) for path in paths]
    known = os.environ if env is None else env
    try:
        front_end = select_front_end(names)
    except SpecError as error:
        return ParsedPipeline(errors=[error])
    if not isinstance(front_end, DocumentFrontEnd):
        pipeline = front_end.read(names, overrides=overrides, env=known)
    else:
        document, errors = read_documents(names, overrides=overrides, env=known)
        pipeline = ParsedPipeline(errors=errors) if document is None else parsed(document, errors)
    if CHOICE.get().strict:
        ignored = [each for each in pipeline.warnings if each.code == "unknown-option"]
        warnings = [each for each in pipeline.warnings if each not in ignored]
        errors = [*pipeline.errors, *map(_as_error, ignored)]
        pipeline = replace(pipeline, errors=errors, warnings=warnings)
    return replace(pipeline, files=tuple(names))


def _as_error(warning: SpecError) -> SpecError:
    """Returns the error of an option that would be ignored."""
    return SpecError(
        warning.message.removesuffix(IGNORED), code=warning.code, where=warning.where,
        hint=warning.hint,
    )  # fmt: skip

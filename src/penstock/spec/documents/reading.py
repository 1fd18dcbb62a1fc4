"""From files to one document: includes, overlays, overrides, variables and connections."""

from __future__ import annotations

import os
from collections.abc import Mapping as Environment
from collections.abc import Sequence as List
from dataclasses import replace
from pathlib import Path

from penstock.core.errors import PenstockError, raise_all
from penstock.spec.documents.connections import apply_connections
from penstock.spec.documents.include import IncludeReader
from penstock.spec.documents.interpolate import Interpolator
from penstock.spec.documents.overlay import merge_files, without_entries
from penstock.spec.documents.overrides import apply_overrides
from penstock.spec.documents.profiles import Profiles
from penstock.spec.front_end import document_front_end, is_test_file
from penstock.spec.parsed import MissingParts, Overrides, ParsedPipeline, combine
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import MappingNode


def load(
    paths: List[str | Path],
    *,
    overrides: Overrides = (),
    env: Environment[str, str] | None = None,
) -> Document:
    """Returns the document of files and their includes, with overrides applied.

    `-` is standard input. `env` has the values of variables and defaults to the environment of
    the process. Nodes have the options of their connections. Raises SpecError or
    ValidationErrors.
    """
    document, errors = read_documents(paths, overrides=overrides, env=env)
    raise_all(errors)
    assert document is not None
    return document


def read_documents(
    paths: List[str | Path] | List[str],
    *,
    overrides: Overrides = (),
    env: Environment[str, str] | None = None,
) -> tuple[Document | None, list[PenstockError]]:
    """Reads documents as `load` does, and returns errors instead of raising them.

    The document lacks the files, entries and statements that cannot be read. Of files that replace
    options of others it lacks all entries of the same names. If these are not known, errors that an
    option of them may correct are left out. The document is None if no file can be read.
    """
    variables = os.environ if env is None else env
    reader = IncludeReader(variables)
    files = reader.read(paths)
    documents = [each for file in files for each in file]
    missing = MissingParts(others=True) if reader.errors else None
    unread = combine([missing, *(each.missing for each in documents)])
    if not files:
        return None, reader.errors
    if unread and unread.others and _replace(paths):
        missing = unread = replace(unread, options=True)
    if missing is not None:
        files[0][0] = replace(files[0][0], missing=missing | files[0][0].missing)
    if unread and _replace(paths):
        files = [[without_entries(each, unread.names) for each in file] for file in files]
    document, errors = complete(files, overrides, variables)
    if unread:
        errors = [error for error in errors if not unread.may_correct(error)]
    return document, [*reader.errors, *errors]


def _replace(paths: List[str | Path] | List[str]) -> bool:
    """Returns whether one of the files may replace options of another one."""
    replacing = [
        path
        for path in map(str, paths)
        if document_front_end(path).replaces_options and not is_test_file(path)
    ]
    return len(replacing) > 1


def parsed(document: Document, errors: List[PenstockError]) -> ParsedPipeline:
    """Returns a document as a pipeline before validation."""
    return ParsedPipeline(
        document.root.data(), document, errors, document.warnings, document.replacements,
        document.missing,
    )  # fmt: skip


def complete(
    files: List[List[Document]], overrides: Overrides, variables: Environment[str, str]
) -> tuple[Document, list[PenstockError]]:
    """Merges files and applies overrides, variables and connections."""
    document, merge_errors = merge_files(files)
    document, override_errors = apply_overrides(document, overrides)
    interpolator = Interpolator(variables)
    root = interpolator.node(document.root)
    assert isinstance(root, MappingNode)
    document, connection_errors = apply_connections(
        replace(document, root=root), Profiles.of(variables)
    )
    return document, [*merge_errors, *override_errors, *interpolator.errors, *connection_errors]

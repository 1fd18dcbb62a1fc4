"""The YAML front end: files, includes, variables, overrides and connections to one document."""

from __future__ import annotations

import os
from collections.abc import Mapping as Environment
from collections.abc import Sequence as List
from dataclasses import replace
from pathlib import Path

from penstock.core.errors import PenstockError, SpecError, ValidationErrors, raise_all
from penstock.spec.front_end import SCRIPT_SUFFIX, Overrides, ParsedPipeline
from penstock.spec.script import parse_script
from penstock.spec.yaml.connections import apply_connections
from penstock.spec.yaml.document import Document
from penstock.spec.yaml.include import IncludeReader
from penstock.spec.yaml.interpolate import Interpolator
from penstock.spec.yaml.nodes import MappingNode
from penstock.spec.yaml.overlay import merge_files
from penstock.spec.yaml.overrides import apply_overrides

SUFFIXES = {".yaml", ".yml", ".json", SCRIPT_SUFFIX}


class YamlFrontEnd:
    """The front end of YAML files, of JSON files, which are YAML, and of SQL scripts."""

    def check_schema(self, path: str) -> bool:
        """Returns whether the suffix is one of YAML, JSON or SQL; `-` is YAML."""
        return path == "-" or Path(path).suffix in SUFFIXES

    def read(
        self, paths: List[str], *, overrides: Overrides = (), env: Environment[str, str]
    ) -> ParsedPipeline:
        """Reads the files of one pipeline; see `FrontEnd.read`."""
        document, errors = read_documents(paths, overrides=overrides, env=env)
        if document is None:
            return ParsedPipeline(errors=errors)
        return ParsedPipeline(
            document.root.data(), document, errors, document.warnings, document.replacements
        )


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

    The document is None if a file cannot be read.
    """
    variables = os.environ if env is None else env
    reader = IncludeReader(variables)
    files = reader.read(paths)
    if reader.errors or not files:
        doubled = (e for documents in files for each in documents for e in each.errors)
        return None, [*reader.errors, *doubled]
    return _complete(files, overrides, variables)


def read_script(
    text: str, name: str, *, overrides: Overrides = (), env: Environment[str, str] | None = None
) -> ParsedPipeline:
    """Reads the text of a SQL script, whose paths are relative to the working directory.

    Messages use `name` as the name of the file. Errors are in the result.
    """
    try:
        script = parse_script(text, name, Path.cwd())
    except (SpecError, ValidationErrors) as error:
        return ParsedPipeline(errors=[error])
    document, errors = _complete([[script]], overrides, os.environ if env is None else env)
    return ParsedPipeline(document.root.data(), document, errors, document.warnings)


def _complete(
    files: List[List[Document]], overrides: Overrides, variables: Environment[str, str]
) -> tuple[Document, list[PenstockError]]:
    """Merges files and applies overrides, variables and connections."""
    document, merge_errors = merge_files(files)
    document, override_errors = apply_overrides(document, overrides)
    interpolator = Interpolator(variables)
    root = interpolator.node(document.root)
    assert isinstance(root, MappingNode)
    document, connection_errors = apply_connections(replace(document, root=root))
    return document, [*merge_errors, *override_errors, *interpolator.errors, *connection_errors]

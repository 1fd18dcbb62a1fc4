"""The front end of SQL scripts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from penstock.core.errors import SpecError, ValidationErrors
from penstock.core.location import Location
from penstock.spec.documents.files import read_text
from penstock.spec.front_end import SCRIPT_SUFFIX, DocumentFrontEnd
from penstock.spec.parsed import Overrides, ParsedPipeline
from penstock.spec.tree.document import Document


class ScriptFrontEnd(DocumentFrontEnd):
    """The front end of SQL scripts. It imports their reading on use.

    Scripts add to other files, and replace nothing in them.
    """

    has_queries_without_sources = True
    hints = {
        "sources": "add a table: CREATE TABLE name (columns) WITH (connector = 'files', ...)",
        "sinks": "add a query: SELECT ..., or INSERT INTO a table SELECT ...",
        "unread": "add a query with FROM {node}, or remove the statement",
    }

    def accepts(self, path: str) -> bool:
        """Returns whether the suffix is that of scripts."""
        return Path(path).suffix.lower() == SCRIPT_SUFFIX

    def read_document(self, path: str, where: Location | None = None) -> Document:
        """Returns the document of a file; see `DocumentFrontEnd.read_document`."""
        from penstock.spec.script.document import parse_valid_part

        return parse_valid_part(read_text(Path(path), where), path, Path(path).absolute().parent)


def read_script(
    text: str, name: str, *, overrides: Overrides = (), env: Mapping[str, str] | None = None
) -> ParsedPipeline:
    """Reads the text of a SQL script, whose paths are relative to the working directory.

    Messages use `name` as the name of the file. Errors are in the result.
    """
    from penstock.spec.documents.reading import complete, parsed
    from penstock.spec.script.document import parse_valid_part

    try:
        script = parse_valid_part(text, name, Path.cwd())
    except (SpecError, ValidationErrors) as error:
        return ParsedPipeline(errors=[error])
    return parsed(*complete([[script]], overrides, os.environ if env is None else env))

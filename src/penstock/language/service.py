"""The service of editors: diagnostics with fixes, completion, hover, definitions, symbols.

Every function takes the text as it is in the editor. Only `diagnose`, and the first request about a
file, plan the pipeline; they read its other files.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock import checks
from penstock.core.errors import PenstockError
from penstock.language import hover as hovers
from penstock.language import navigation
from penstock.language.document import Document
from penstock.language.fixes import fixes_of
from penstock.language.model import Completions, Fix, Hover, Position, Symbol, Target
from penstock.language.reading import Reading, remember
from penstock.language.script_completion import ScriptCompleter
from penstock.language.yaml_completion import YamlCompleter
from penstock.spec.documents.files import unsaved


@dataclass(frozen=True)
class Diagnosis:
    """The result of a check, with the fixes of its errors and warnings in the file itself."""

    result: checks.CheckResult
    fixes: dict[int, tuple[Fix, ...]]
    """The fixes by the identity of an error."""

    def fixes_of(self, error: PenstockError) -> tuple[Fix, ...]:
        """Returns the fixes of an error of the result."""
        return self.fixes.get(id(error), ())


def diagnose(
    document: Document, *, level: checks.Level = "static", timeout: float = 30.0
) -> Diagnosis:
    """Checks a text in place of its file, as `penstock check` does."""
    with unsaved({document.path: document.text}):
        result = checks.check(document.path, level=level, timeout=timeout)
    remember(document, result.partial, result.errors)
    own = str(document.path)
    fixes = {
        id(error): fixes_of(error, document)
        for error in (*result.errors, *result.warnings)
        if error.where is not None and error.where.file == own
    }
    return Diagnosis(result, fixes)


def complete(document: Document, position: Position) -> Completions:
    """Returns the proposals at a position; empty where nothing is proposed."""
    reading, index = Reading(document), document.index(position)
    found = None
    if reading.language == "sql":
        found = ScriptCompleter(
            document, reading.statements, reading.relations, reading.planned.functions
        ).complete(index)
    elif reading.language == "yaml":
        found = YamlCompleter(
            document, reading.root, reading.relations, reading.planned.functions
        ).complete(index)
    return found or Completions(document.range(index, index))


def hover(document: Document, position: Position) -> Hover | None:
    """Returns the documentation of the word at a position; None without any."""
    return hovers.hover(Reading(document), document.index(position))


def definition(document: Document, position: Position) -> Target | None:
    """Returns the place where the name at a position is defined; None for another text."""
    return navigation.definition(Reading(document), document.index(position))


def symbols(document: Document) -> tuple[Symbol, ...]:
    """Returns the symbols of a file, in its order."""
    return navigation.symbols(Reading(document))

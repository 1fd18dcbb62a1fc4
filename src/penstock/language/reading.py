"""A document with its outline, its nodes and the columns of its last plan."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from penstock import app
from penstock.core.errors import PenstockError
from penstock.language.document import Document
from penstock.language.functions import FunctionHelp
from penstock.language.planned import planned_columns
from penstock.language.relations import Kind, Relation, Relations
from penstock.language.script import ScriptStatement, read_statements, script_relations
from penstock.language.yaml_entry import Entry
from penstock.language.yaml_outline import read_outline
from penstock.language.yaml_relations import yaml_relations
from penstock.plan.explain import Column
from penstock.plan.make import PartialPlan
from penstock.plan.model import Plan
from penstock.spec.documents.files import unsaved
from penstock.spec.front_end import language_of

MAX_REMEMBERED = 32


@dataclass(frozen=True)
class Planned:
    """Facts of the last plan of a file, and the errors of the text that it was made from."""

    text: str
    columns: Mapping[str, tuple[Column, ...]]
    functions: tuple[FunctionHelp, ...]
    nodes: tuple[tuple[str, Kind, str, str], ...]
    """The nodes of all files of the pipeline: name, kind, type and file."""
    errors: tuple[PenstockError, ...] = ()

    @property
    def names(self) -> set[str]:
        """The names of nodes and functions."""
        return {name for name, _, _, _ in self.nodes} | {each.name for each in self.functions}


_PLANNED: OrderedDict[Path, Planned] = OrderedDict()
_NOTHING = Planned("", {}, (), ())


def remember(
    document: Document, partial: PartialPlan | None, errors: Iterable[PenstockError]
) -> Planned:
    """Stores the facts of a plan for later requests about the same file.

    Without a plan the facts of the last plan remain.
    """
    last = _PLANNED.pop(document.path, _NOTHING)
    plan = partial.plan if partial is not None else None
    found = Planned(
        document.text,
        planned_columns(plan) if plan else last.columns,
        tuple(_functions(plan)) if plan else last.functions,
        tuple(_nodes(plan)) if plan else last.nodes,
        tuple(errors),
    )
    _PLANNED[document.path] = found
    while len(_PLANNED) > MAX_REMEMBERED:
        _PLANNED.popitem(last=False)
    return found


def planned(document: Document, names: Set[str]) -> Planned:
    """Returns the facts of the last plan of a file, or of the text.

    The text is planned if the last plan has not all of the `names` of its nodes and functions.
    """
    known = _PLANNED.get(document.path)
    if known is not None and (known.text == document.text or names <= known.names):
        return known
    with unsaved({document.path: document.text}):
        partial, errors = app.partial_plan(document.path)
    return remember(document, partial, errors)


def _functions(plan: Plan) -> Iterable[FunctionHelp]:
    for each in plan.functions:
        yield FunctionHelp(each.name, (each.signature,), "A function of the pipeline.")


def _nodes(plan: Plan) -> Iterable[tuple[str, Kind, str, str]]:
    for node in plan.nodes.values():
        if node.where is not None and node.is_named:
            yield node.written_name, node.kind, node.type, node.where.file


@dataclass(frozen=True)
class Reading:
    """A document as the service reads it. Its parts are read at their first use."""

    document: Document

    @cached_property
    def language(self) -> str:
        """The language: `yaml`, `sql`, or that of another system."""
        with unsaved({self.document.path: self.document.text}):
            return language_of(str(self.document.path))

    @cached_property
    def root(self) -> Entry:
        """The outline of a YAML text."""
        return read_outline(self.document)

    @cached_property
    def statements(self) -> list[ScriptStatement]:
        """The statements of a script."""
        return list(read_statements(self.document.text))

    @cached_property
    def planned(self) -> Planned:
        """The facts of the last plan."""
        if self.language == "sql":
            functions = {each.name for each in self.statements if each.kind == "function"}
        else:
            section = self.root.child("functions")
            functions = {str(each.step) for each in section.children} if section else set()
        return planned(self.document, functions | {node.name for node in self.nodes})

    @cached_property
    def nodes(self) -> list[Relation]:
        """The nodes of the text."""
        if self.language == "sql":
            return list(script_relations(self.document.text, self.statements))
        return list(yaml_relations(self.document.text, self.root))

    @cached_property
    def relations(self) -> Relations:
        """The nodes of the pipeline: those of the text, and those of its other files."""
        known = {node.name.lower() for node in self.nodes}
        own = str(self.document.path)
        others = [
            Relation(name, kind, type_, 0, 0)
            for name, kind, type_, file in self.planned.nodes
            if name.lower() not in known and file != own
        ]
        return Relations([*self.nodes, *others], self.planned.columns)

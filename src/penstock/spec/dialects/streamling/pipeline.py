"""A file of Streamling as the tree of a pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from penstock.core.location import Location
from penstock.core.names import derived_name
from penstock.core.text import did_you_mean
from penstock.spec.dialects.options.declarations import Option, Options, options
from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.dialects.options.trees import Tree, to_node
from penstock.spec.dialects.streamling import plugins, sinks, sources, transforms
from penstock.spec.dialects.streamling.functions import called_functions
from penstock.spec.dialects.streamling.nodes import SECTIONS, Fact, Pipeline, node_names
from penstock.spec.dialects.streamling.queries import Reference, references
from penstock.spec.dialects.streamling.settings import Settings
from penstock.spec.tree.nodes import Entry, MappingNode, ScalarNode

TOP: Options = options(
    Option("sources", "map", True), Option("transforms", "map"), Option("sinks", "map", True),
    "name = `name`", "definition:map = a map with the three maps",
)  # fmt: skip
KINDS = {"sources": "source", "transforms": "transform", "sinks": "sink"}
_KNOWN: Mapping[str, Mapping[str, Options]] = {
    "source": sources.SOURCES, "transform": transforms.TRANSFORMS, "sink": sinks.SINKS,
}  # fmt: skip
_READERS = {
    "source": sources.READERS, "transform": transforms.READERS, "sink": sinks.READERS,
}  # fmt: skip
_TRUTH = ("true", "false")
_OTHERS = ("tests", "runtime")
"""Sections of Penstock that a companion file or the file itself may have."""


def to_pipeline(root: MappingNode, settings: Settings, findings: Findings) -> MappingNode:
    """Returns the tree of the pipeline of a file, without nodes that have errors.

    Errors and warnings are in `findings`.
    """
    root = _unwrapped(root)
    others = tuple(entry for entry in root.entries if entry.name in _OTHERS)
    entries = tuple(entry for entry in root.entries if entry not in others)
    only_tests = bool(others) and not entries
    if only_tests:
        return root
    top = Reading(MappingNode(entries, root.location, root.base), "the file", TOP, findings)
    facts = list(_with_own_names(list(_facts(top, findings)), findings))
    pipeline = Pipeline(settings, findings, _readable(facts), _names(facts))
    _check_inputs(facts, pipeline)
    for fact in facts:
        _add(fact, pipeline)
    _check_job(facts, pipeline)
    sections = [
        Entry(_key(name, root.location, root.base), MappingNode(tuple(nodes.values()),
              root.location, root.base))
        for name, nodes in pipeline.sections.items() if nodes
    ]  # fmt: skip
    return MappingNode((*_head(root, pipeline), *sections, *others), root.location, root.base)


def _unwrapped(root: MappingNode) -> MappingNode:
    """Returns the map below `definition`, if there is one."""
    inner = root.get("definition")
    if not isinstance(inner, MappingNode):
        return root
    others = tuple(each for each in root.entries if each.name in ("name", *_OTHERS))
    return MappingNode((*others, *inner.entries), root.location, root.base)


def _head(root: MappingNode, pipeline: Pipeline) -> Iterator[Entry]:
    """Yields the name of the pipeline, the functions of its queries and those of its plugins."""
    settings = pipeline.settings
    nodes = [entry.value for entry in pipeline.sections["transforms"].values()]
    queries = [node.get("sql") for node in nodes if isinstance(node, MappingNode)]
    texts = [query.written for query in queries if isinstance(query, ScalarNode)]
    tree: dict[str, Tree] = {
        "name": settings.written("application_id") or root.get("name"),
        "functions": called_functions(texts),
        "plugins": _plugin_files(settings),
        "side_outputs": _side_outputs(pipeline),
    }
    node = to_node(tree, root)
    assert isinstance(node, MappingNode)
    yield from node.entries


def _plugin_files(settings: Settings) -> Sequence[str] | None:
    path = Path(settings.text("plugin.path"))
    if path.suffix == ".py":
        return [str(path.absolute())]
    files = sorted(path.glob("*.py")) if settings.text("plugin.path") and path.is_dir() else []
    return [str(file.absolute()) for file in files] or None


def _side_outputs(pipeline: Pipeline) -> dict[str, Tree] | None:
    """Returns a side output of each id of the settings for each source; None without any."""
    settings = pipeline.settings
    found: dict[str, Tree] = {}
    sources = [fact for fact in pipeline.facts.values() if fact.kind == "source"]
    for id_ in settings.items("plugin.side_output_ids"):
        options = settings.below(f"plugin.side_output_options.{id_.lower()}")
        for fact in sources:
            node = pipeline.names[fact.name.lower()]
            tree: dict[str, Tree] = {"type": id_, "from": node, **options}
            found[derived_name(re.sub(r"\W", "_", id_), f"_{node}")] = tree
    return found or None


def _facts(top: Reading, findings: Findings) -> Iterator[Fact]:
    for section in SECTIONS:
        node = top.get(section)
        for entry in node.entries if isinstance(node, MappingNode) else ():
            kind = KINDS[section]
            if not isinstance(entry.value, MappingNode):
                findings.error(
                    f'{kind} "{entry.name}" expects a map', entry.key.location, code="wrong-type",
                    hint="add type: and the options of the node",
                )  # fmt: skip
                continue
            read = _references(kind, entry.value)
            fact = Fact(kind, entry.name, entry.key, entry.value, read)
            if not fact.type:
                findings.error(
                    f'{kind} "{entry.name}" requires "type"', entry.key.location,
                    code="missing-option", hint=f"add one of {', '.join(_KNOWN[kind])}",
                )  # fmt: skip
                continue
            yield fact


def _references(kind: str, node: MappingNode) -> tuple[Reference, ...] | None:
    if kind == "source":
        return ()
    text, from_ = node.get("sql"), node.get("from")
    if isinstance(text, ScalarNode):
        found = references(text)
        return None if found is None else tuple(found)
    if not isinstance(from_, ScalarNode):
        return ()
    return (Reference(from_.written.strip().lower(), from_.location),)


def _readable(facts: Sequence[Fact]) -> dict[str, Fact]:
    return {fact.name.lower(): fact for fact in facts if fact.kind != "sink"}


def _names(facts: Sequence[Fact]) -> dict[str, str]:
    """Returns the names of nodes; those of sinks are below `sinks.`."""
    readable = node_names([fact.name for fact in facts if fact.kind != "sink"])
    written = node_names([fact.name for fact in facts if fact.kind == "sink"])
    return readable | {f"sinks.{name}": written for name, written in written.items()}


def _with_own_names(facts: Sequence[Fact], findings: Findings) -> Iterator[Fact]:
    """Yields the nodes, without sources and transforms that have the name of an earlier one."""
    seen: dict[str, Fact] = {}
    for fact in facts:
        first = fact if fact.kind == "sink" else seen.setdefault(fact.name.lower(), fact)
        if first is fact:
            yield fact
            continue
        findings.error(
            f'two nodes have the name "{fact.name}"', fact.key.location,
            code="duplicate-name", hint=f"the {first.kind} is at {first.key.location}",
        )  # fmt: skip


def _check_inputs(facts: Sequence[Fact], pipeline: Pipeline) -> None:
    """Reports unknown nodes that are read, and nodes that nothing reads.

    Nothing is reported of the latter if it is not known which nodes a query reads.
    """
    unknown = [r for fact in facts for r in fact.references or () if r.name not in pipeline.facts]
    for reference in unknown:
        pipeline.findings.error(
            f'there is no source or transform "{reference.name}"', reference.where,
            code="unknown-input", hint=did_you_mean(reference.name, list(pipeline.facts)),
        )  # fmt: skip
    if unknown or any(fact.references is None for fact in facts):
        return
    read = {name for fact in facts for name in fact.inputs}
    for name, fact in pipeline.facts.items():
        if name not in read and fact.type != "dynamic_table":
            pipeline.findings.error(
                f"nothing reads {fact.subject}", fact.key.location, code=f"unused-{fact.kind}",
                hint="remove it, or connect it to a transform or a sink",
            )  # fmt: skip


def _add(fact: Fact, pipeline: Pipeline) -> None:
    """Adds the nodes of a node of the file, unless it has errors."""
    before = {section: [*nodes] for section, nodes in pipeline.sections.items()}
    count = len(pipeline.findings.errors)
    _read(fact, pipeline)
    if len(pipeline.findings.errors) > count:
        pipeline.remove_since(before)


def _read(fact: Fact, pipeline: Pipeline) -> None:
    known = _KNOWN[fact.kind]
    if fact.type in known:
        subject = f"{fact.subject} ({fact.type})"
        node = _typed(fact.node, known[fact.type])
        reading = Reading(node, subject, known[fact.type], pipeline.findings)
        _READERS[fact.kind][fact.type](fact, reading, pipeline)
    elif not plugins.unknown_type(fact, list(known), pipeline):
        plugins.plugin(fact, fact.node, pipeline)


def _typed(node: MappingNode, known: Options) -> MappingNode:
    """Returns a node whose numbers and truth values may be texts in quotes: `batch_size: "5"`."""
    entries = []
    for entry in node.entries:
        option, value = known.find(entry.name), entry.value
        if option is not None and isinstance(value, ScalarNode) and isinstance(value.value, str):
            value = replace(value, value=_value_of(value.value.strip(), option.kind))
        entries.append(replace(entry, value=value))
    return MappingNode(tuple(entries), node.location, node.base)


def _value_of(text: str, kind: str) -> str | int | bool:
    if kind == "integer" and re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    return text.lower() == "true" if kind == "boolean" and text.lower() in _TRUTH else text


def _check_job(facts: Sequence[Fact], pipeline: Pipeline) -> None:
    """Reports sources that a job may not have."""
    if not pipeline.settings.is_true("job_mode"):
        return
    for fact in facts:
        if fact.kind == "source" and fact.type == "kafka":
            pipeline.findings.error(
                f"{fact.subject} ({fact.type}) does not end, and the pipeline is a job",
                fact.key.location, code="unsupported-option",
                hint="read the topic in a hybrid source, or remove job_mode",
            )  # fmt: skip


def _key(name: str, where: Location, base: Path) -> ScalarNode:
    return ScalarNode(name, name, name, where, base)

"""Values of outputs that may be expressions: topics, keys and channels."""

from __future__ import annotations

import re

from penstock.core.names import standard_literal
from penstock.spec.dialects.arkflow.plans import OutputPlan
from penstock.spec.dialects.options.declarations import Option, options
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.tree.nodes import MappingNode, ScalarNode

_EXPRESSION = options(Option("type", choices=("value", "expr")), Option("value", "any"), "expr")
_PLACEHOLDER = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")


def read_expression(reading: Reading, name: str) -> dict[str, Tree] | None:
    """Returns the value of an option as `{value: ...}` or `{expr: ...}`; None if it is absent.

    A bare text is a value, in which `{column}` stands for a column.
    """
    node = reading.get(name)
    if node is None:
        return None
    if isinstance(node, ScalarNode):
        return _text(node)
    inner = reading.map(name, _EXPRESSION)
    if inner is None:
        return None
    nested = inner.get("value")
    if isinstance(nested, MappingNode):
        # The form `value: {type: value, value: ...}` of the readme.
        return read_expression(inner, "value")
    if inner.text("type") == "expr" or (inner.get("expr") is not None and nested is None):
        return _required(inner, "expr")
    return _required(inner, "value")


def _required(reading: Reading, name: str) -> dict[str, Tree] | None:
    if reading.get(name) is not None:
        return {name: reading.get(name)}
    reading.findings.error(
        f'{reading.subject} requires "{name}"', reading.node.location, code="missing-option"
    )
    return None


def _text(node: ScalarNode) -> dict[str, Tree]:
    if not _PLACEHOLDER.search(node.written):
        return {"value": node}
    parts, position = [], 0
    for match in _PLACEHOLDER.finditer(node.written):
        parts.append(standard_literal(node.written[position : match.start()]))
        parts.append(f"arrow_cast(\"{match[1]}\", 'Utf8')")
        position = match.end()
    parts.append(standard_literal(node.written[position:]))
    return {"expr": f"concat({', '.join(part for part in parts if part != chr(39) * 2)})"}


def set_template(plan: OutputPlan, reading: Reading, name: str, option: str) -> None:
    """Sets an option of a sink to a template: of a constant text, or of a column."""
    found = read_expression(reading, name)
    if found is None:
        return
    value = found.get("value")
    if value is not None:
        plan.sink[option] = _escaped(value)
    else:
        # A constant text, such as the key "topic", is not the name of a column.
        column = f"__{option}__"
        plan.columns[column] = found
        plan.sink[option] = f"{{{column}}}"


def _escaped(value: Tree) -> Tree:
    """Returns a text as a template, in which braces stand for themselves."""
    if not isinstance(value, ScalarNode):
        return value
    text = re.sub(r"(?<!\$)\{", "{{", value.written)
    text = re.sub(r"\}", "}}", text) if "{{" in text and "${" not in text else text
    return value if text == value.written else text

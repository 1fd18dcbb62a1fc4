"""`penstock describe`: the options, guarantee and example of a component."""

from __future__ import annotations

import json as json_text
from collections.abc import Sequence
from dataclasses import asdict

from penstock.cli.options import Json
from penstock.cli.printing import print_json, print_table, print_text
from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.sdk import registry
from penstock.sdk.describe import Description, Option, shared_options
from penstock.sdk.describe import describe as describe_type
from penstock.sdk.guarantees import ACKNOWLEDGED_LABEL
from penstock.sdk.registry import Kind


def describe(kind: str, type: str = "", /, *, json: Json = False) -> None:
    """Describe a source, transform, sink or format: its options, guarantee and an example.

      penstock describe source files
      penstock describe format csv
      penstock describe sink files --json

    Parameters
    ----------
    kind
        source, transform, sink, format or side_output.
    type
        The type, as in penstock list.
    """
    description = describe_type(_resolve_kind(kind), _require_type(kind, type))
    shared = shared_options(description.kind)
    if json:
        print_json({**asdict(description), "shared_options": shared})
        return
    _print(description, shared)


def _resolve_kind(word: str) -> Kind:
    for kind in registry.KINDS:
        if word.lower().rstrip("s").replace(" ", "_") == kind:
            return kind
    hint = did_you_mean(word, registry.KINDS)
    for kind in registry.KINDS:
        if word in registry.types(kind):
            hint = f"Run penstock describe {kind} {word}."
            break
    raise PlanError(f'there is no kind of node "{word}"', code="unknown-kind", hint=hint)


def _require_type(kind: str, type_: str) -> str:
    if type_:
        return type_
    hint = f"Add one of {', '.join(registry.types(_resolve_kind(kind)))}."
    raise PlanError(f"expected the type of a {kind}", code="missing-option", hint=hint)


def _print(description: Description, shared: Sequence[Option]) -> None:
    print_text(f"{description.kind} {description.type}: {description.summary}")
    if description.text:
        print()
        print_text(description.text)
    if description.capabilities:
        labels = [f"{n} ({o})" if o else n for n, o in description.capabilities.items()]
        print()
        print_text(f"capabilities: {', '.join(labels)}")
    _print_guarantees(description)
    if description.extra:
        state = "not installed" if description.missing else "installed"
        print(f"\nrequires: pip install 'penstock[{description.extra}]' ({state})")
    _print_options("options", description.options)
    for part in description.parts:
        _print_options(f"options of {part.name}: {part.text}", part.options)
    if description.metadata:
        print("\nmetadata columns")
        columns = [(column.name, column.type) for column in description.metadata]
        print_table(("", ""), columns, indent="  ")
    _print_options(f"options of every {description.kind}", shared)
    if description.example:
        print("\nexample")
        print("".join(f"  {line}\n" for line in description.example.splitlines()), end="")


def _print_guarantees(description: Description) -> None:
    """Prints guarantees that depend on options as a table."""
    label = ACKNOWLEDGED_LABEL.get(description.kind, "")
    if len(description.guarantees) > 1:
        rows = [
            (p.variant, p.parallelism, p.guarantee, p.acknowledged) for p in description.guarantees
        ]
        print()
        print_table(("with", "parallelism", "guarantee", label), rows, wrap=True)
        return
    for guarantee in description.guarantees:
        print()
        print_text(f"parallelism: {guarantee.parallelism}")
        print_text(f"guarantee: {guarantee.guarantee}")
        print_text(f"{label}: {guarantee.acknowledged}")


def _print_options(title: str, options: Sequence[Option]) -> None:
    if not options:
        return
    print()
    print_text(title)
    rows = [(o.name, o.type, _default(o), " ".join(o.text.split())) for o in options]
    print_table(("name", "type", "default", ""), rows, indent="  ", wrap=True)


def _default(option: Option) -> str:
    if option.required:
        return "(required)"
    value = option.default
    if value in (None, [], {}):
        return ""
    if value == "":
        return '""'
    return value if isinstance(value, str) else json_text.dumps(value, ensure_ascii=False)

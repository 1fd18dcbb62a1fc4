"""`penstock describe`: one component, with its options and an example."""

from __future__ import annotations

import json as json_text
from collections.abc import Sequence
from dataclasses import asdict

from penstock.cli.options import Json
from penstock.cli.printing import print_json, print_table
from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.sdk import registry
from penstock.sdk.describe import Description, Option, shared_options
from penstock.sdk.describe import describe as of
from penstock.sdk.promise import TOLD
from penstock.sdk.registry import Kind


def describe(kind: str, type: str = "", /, *, json: Json = False) -> None:
    """Describe a source, transform, sink or format: its options, guarantee and an example.

      penstock describe source files
      penstock describe format csv
      penstock describe sink files --json

    Parameters
    ----------
    kind
        source, transform, sink or format.
    type
        The type, as penstock list shows it.
    """
    found = of(_kind(kind, type), _known(kind, type))
    shared = shared_options(found.kind)
    if json:
        print_json({**asdict(found), "shared_options": shared})
        return
    _print(found, shared)


def _kind(word: str, type_: str) -> Kind:
    for kind in registry.KINDS:
        if word.lower().rstrip("s") == kind:
            return kind
    meant = next((k for k in registry.KINDS if word in registry.types(k)), None)
    hint = f"penstock describe {meant} {word}" if meant else did_you_mean(word, registry.KINDS)
    raise PlanError(f'there is no kind of node "{word}"', code="unknown-kind", hint=hint)


def _known(kind: str, type_: str) -> str:
    if type_:
        return type_
    known = ", ".join(registry.types(_kind(kind, type_)))
    raise PlanError(
        f"which {kind} is to be described?", code="missing-option", hint=f"known: {known}"
    )


def _print(found: Description, shared: Sequence[Option]) -> None:
    print(f"{found.kind} {found.type}: {found.summary}")
    if found.text:
        print(f"\n{found.text}")
    if found.capabilities:
        named = [f"{n} ({o})" if o else n for n, o in found.capabilities.items()]
        print(f"\ncapabilities: {', '.join(named)}")
    _print_promises(found)
    if found.extra:
        state = "is not installed" if found.missing else "is installed"
        print(f"\nneeds: pip install 'penstock[{found.extra}]', which {state}")
    _print_options("options", found.options)
    for part in found.parts:
        _print_options(f"options of {part.name}: {part.text}", part.options)
    if found.metadata:
        print("\nmetadata columns")
        print_table(("", ""), [(each.name, each.type) for each in found.metadata], indent="  ")
    _print_options(f"options of every {found.kind}", shared)
    if found.example:
        print("\nexample")
        print("".join(f"  {line}\n" for line in found.example.splitlines()), end="")


def _print_promises(found: Description) -> None:
    """What changes with the options is a table."""
    told = TOLD.get(found.kind, "")
    if len(found.promises) > 1:
        rows = [(p.variant, p.parallelism, p.guarantee, p.told) for p in found.promises]
        print()
        print_table(("with", "parallelism", "guarantee", told), rows, wrap=True)
        return
    for each in found.promises:
        print(f"\nparallelism: {each.parallelism}")
        print(f"guarantee: {each.guarantee}")
        print(f"{told}: {each.told}")


def _print_options(title: str, options: Sequence[Option]) -> None:
    if not options:
        return
    print(f"\n{title}")
    rows = [(o.name, o.type, _default(o), " ".join(o.text.split())) for o in options]
    print_table(("name", "type", "default", "meaning"), rows, indent="  ", wrap=True)


def _default(option: Option) -> str:
    if option.required:
        return "(required)"
    value = option.default
    if value in (None, [], {}):
        return ""
    if value == "":
        return '""'
    return value if isinstance(value, str) else json_text.dumps(value, ensure_ascii=False)

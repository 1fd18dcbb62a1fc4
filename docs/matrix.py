"""The page of all connectors: what each promises, and how its tests show that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proof import Proof, proofs
from tables import table

from penstock.sdk import Capability, Sink, Source, registry
from penstock.sdk.promise import TOLD, Promise, promise, variants
from penstock.sdk.registry import Kind

HEAD = """# Connectors

All sources and sinks side by side. Each row is a connector, or one of the ways in which it works
that promise something else; the options that choose it are below its name.

**Exactly once**: whatever is killed, a record comes into Penstock once. Its position is in the
pipeline's state, and the same range can be read again. **At least once**: what the outside system
was told is safe is never lost; what it was not told may come again. **At most once**: nobody can
be told, or nobody keeps what was not taken; from the moment that a message is on disk
it is read exactly once. On disk means synced, unless `journal: {flush: TIME}` says that nobody
waits for that. Of a whole pipeline `penstock explain` says the guarantee, and why.

"""
SINKS = """For sinks these words are about a batch that is repeated after a crash: it is there once,
or some of its rows are there again. Where nobody tells whether they arrived, it is at most once.
All sinks have the options `batch` and `rate_limit`; *rows at once* is what a connector is given
where `batch` says nothing.

"""
TESTS = """## Tests

Each number under *tests* is of those of the contract (`penstock.testing.contract`) that apply,
over all classes in `tests/contract` that are about the row; a footnote has what is excused there
and why. An excuse is strict: a test that passes in spite of it fails. CI runs all of them against
these servers, which `tests/servers` starts:

"""
MADE = """Amazon's services cannot be run on a machine of one's own, nor can a Modbus device: moto
and pymodbus stand in for them. Formats with a `registry` are tested against Apicurio Registry
3.3.3.

This page is written by `./dev docs` from what the components declare, which the contract
compares with what they are with the options of its tests, and from the tests that pytest collects.
"""


class Notes:
    """Footnotes, each reason once."""

    def __init__(self) -> None:
        self._reasons: dict[str, int] = {}

    def mark(self, reasons: Iterable[str]) -> str:
        """The marks of these reasons."""
        numbers = (self._reasons.setdefault(r, len(self._reasons) + 1) for r in reasons)
        return "".join(f"[^{number}]" for number in dict.fromkeys(numbers))

    def __str__(self) -> str:
        return "".join(f"[^{number}]: {reason}\n" for reason, number in self._reasons.items())


def connectors() -> str:
    """The page."""
    found, notes = proofs(), Notes()
    page = f"{HEAD}## Sources\n\n{_table('source', found, notes)}"
    page += f"## Sinks\n\n{SINKS}{_table('sink', found, notes)}"
    return f"{page}{TESTS}{_servers(found)}{MADE}\n{notes}"


def _table(kind: Kind, found: Mapping[tuple[type[Any], str], Proof], notes: Notes) -> str:
    rows: list[Sequence[str]] = []
    for type_ in registry.types(kind):
        component = registry.find(kind, type_)
        for variant, made in variants(component).items():
            assert isinstance(made, Source | Sink)
            assert (component, variant) in found, f"no contract of {type_} with: {variant}"
            said, proof = promise(made, variant), found[component, variant]
            name = f"[`{type_}`]({kind}s.md#{type_})" + (f"<br>`{variant}`" if variant else "")
            rows.append(
                (
                    name, said.parallelism, said.guarantee + notes.mark(proof.forgets), said.told,
                    "kept" if Capability.ORDERED in said.capabilities else "not kept",
                    *_own(made, proof), component.extra or "", _tests(said, proof, notes),
                )
            )  # fmt: skip
    own = ("a batch is limited by", "metadata") if kind == "source" else ("rows at once",)
    header = ("type", "unit of parallelism", "guarantee", TOLD[kind], "order in a unit", "carries")
    return table((*header, *own, "extra", "tests"), rows)


def _own(made: Source[Any] | Sink[Any], proof: Proof) -> tuple[str, ...]:
    """What only sources, or only sinks have."""
    if isinstance(made, Sink):
        return _carried(made), f"{made.most_rows:,}" if made.most_rows else ""
    names = ", ".join(f"`{name}`" for name in made.metadata().names)
    return _carried(made), ", ".join(f"`{name}`" for name in proof.limits), names


def _carried(made: Source[Any] | Sink[Any]) -> str:
    what = "messages" if Capability.BYTES in made.capabilities else "rows"
    plain = {Source.format_for, Sink.format_for}
    formatted = what == "messages" or type(made).format_for not in plain
    return f"{what}, by [`format`](formats.md)" if formatted else what


def _tests(said: Promise, proof: Proof, notes: Notes) -> str:
    excused = proof.excused
    marks = notes.mark(f"`{test}`: {reason}" for test, reason in excused)
    return f"{proof.count(said.capabilities)}" + (
        f", {len(excused)} excused{marks}" * bool(excused)
    )


def _servers(found: Mapping[tuple[type[Any], str], Proof]) -> str:
    """Each server, with the connectors that are tested against it."""
    tested: dict[str, dict[str, None]] = {}
    for kind in ("source", "sink"):
        for type_ in registry.types(kind):  # type: ignore[arg-type]
            component = registry.find(kind, type_)  # type: ignore[arg-type]
            for variant in variants(component):
                for server in found.get((component, variant), Proof()).servers:
                    tested.setdefault(server, {})[f"`{type_}`"] = None
    return table(("server", "connectors"), [(s, ", ".join(tested[s])) for s in sorted(tested)])

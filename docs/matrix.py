"""The page of all connectors: their guarantees and contract tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proof import Proof, proofs
from tables import table
from truncations import truncations

from penstock.sdk import Capability, Sink, Source, registry
from penstock.sdk.guarantees import (
    ACKNOWLEDGED_LABEL,
    DeliveryGuarantee,
    delivery_guarantee,
    variants,
)
from penstock.sdk.registry import Kind

HEAD = """# Connectors

All sources and sinks and their guarantees. Each row is a connector, or a variant of a connector
with other guarantees. The options that select the variant are below its name.

**Exactly once**: each record is read once, also after a crash. The offset is in the state of the
pipeline, and the same range can be read again. **At least once**: acknowledged messages are never
lost; unacknowledged messages may be delivered again. **At most once**: the system has no
acknowledgements, or does not keep messages. Once a message is on disk, it is read exactly once.
On disk means after fsync, unless `journal: {flush: TIME}` delays the fsync. `penstock explain`
shows the guarantee of a whole pipeline, and the reason.

"""
SINKS = """For sinks the guarantee applies to a batch repeated after a crash: exactly once writes it
once, at least once may write some of its rows twice. Systems without acknowledgements are at most
once. All sinks have the options `batch` and `rate_limit`; *rows per write* is the default of
`batch: {max_records}`.

"""
TESTS = """## Tests

*tests* is the number of applicable tests of the contract (`penstock.testing.contract`), over all
classes in `tests/contract` for the row. Footnotes list excused tests with the reason. An excuse
is strict: an excused test that passes is a failure. CI runs all tests against these servers,
started by `tests/servers`:

"""
MADE = """moto simulates the AWS services and pymodbus simulates a Modbus device. OpenSearch stands
in for Elasticsearch, with requests for points in time that are translated. Formats with a
`registry` are tested against Apicurio Registry 3.3.3.

`./dev docs` generates this page from the declarations of the components, which the contract
verifies, and from the tests collected by pytest.
"""


class Notes:
    """Footnotes without duplicates."""

    def __init__(self) -> None:
        self._reasons: dict[str, int] = {}

    def mark(self, reasons: Iterable[str]) -> str:
        """Returns the footnote marks of the reasons."""
        numbers = (self._reasons.setdefault(r, len(self._reasons) + 1) for r in reasons)
        return "".join(f"[^{number}]" for number in dict.fromkeys(numbers))

    def __str__(self) -> str:
        return "".join(f"[^{number}]: {reason}\n" for reason, number in self._reasons.items())


def connectors() -> str:
    """Returns the page."""
    found, notes = proofs(), Notes()
    page = f"{HEAD}## Sources\n\n{_table('source', found, notes)}"
    page += f"## Sinks\n\n{SINKS}{_table('sink', found, notes)}"
    page += truncations()
    return f"{page}{TESTS}{_servers(found)}{MADE}\n{notes}"


def _table(kind: Kind, found: Mapping[tuple[type[Any], str], Proof], notes: Notes) -> str:
    rows: list[Sequence[str]] = []
    for type_ in registry.types(kind):
        component = registry.find(kind, type_)
        for variant, made in variants(component).items():
            assert isinstance(made, Source | Sink)
            assert (component, variant) in found, f"no contract of {type_} with: {variant}"
            said, proof = delivery_guarantee(made, variant), found[component, variant]
            name = f"[`{type_}`]({kind}s.md#{type_})" + (f"<br>`{variant}`" if variant else "")
            rows.append(
                (
                    name, said.parallelism, said.guarantee + notes.mark(proof.lossy_reasons),
                    said.acknowledged,
                    "kept" if Capability.ORDERED in said.capabilities else "not kept",
                    *_own(made, proof), component.extra or "", _tests(said, proof, notes),
                )
            )  # fmt: skip
    own = ("batch limits", "metadata") if kind == "source" else ("rows per write",)
    header = (
        "type", "unit of parallelism", "guarantee", ACKNOWLEDGED_LABEL[kind], "order in a unit",
        "carries",
    )  # fmt: skip
    return table((*header, *own, "extra", "tests"), rows)


def _own(made: Source[Any] | Sink[Any], proof: Proof) -> tuple[str, ...]:
    """Returns the cells specific to sources or to sinks."""
    if isinstance(made, Sink):
        return _carried(made), f"{made.max_rows_per_write:,}" if made.max_rows_per_write else ""
    names = ", ".join(f"`{name}`" for name in made.metadata_schema().names)
    return _carried(made), ", ".join(f"`{name}`" for name in proof.limits), names


def _carried(made: Source[Any] | Sink[Any]) -> str:
    what = "messages" if Capability.BYTES in made.capabilities else "rows"
    plain = {Source.default_format, Sink.default_format}
    formatted = what == "messages" or type(made).default_format not in plain
    return f"{what}, by [`format`](formats.md)" if formatted else what


def _tests(said: DeliveryGuarantee, proof: Proof, notes: Notes) -> str:
    excused = proof.excused
    marks = notes.mark(f"`{test}`: {reason}" for test, reason in excused)
    return f"{proof.count(said.capabilities)}" + (
        f", {len(excused)} excused{marks}" * bool(excused)
    )


def _servers(found: Mapping[tuple[type[Any], str], Proof]) -> str:
    """Returns a table of servers and the connectors tested against each."""
    tested: dict[str, dict[str, None]] = {}
    for kind in ("source", "sink"):
        for type_ in registry.types(kind):  # type: ignore[arg-type]
            component = registry.find(kind, type_)  # type: ignore[arg-type]
            for variant in variants(component):
                for server in found.get((component, variant), Proof()).servers:
                    tested.setdefault(server, {})[f"`{type_}`"] = None
    return table(("server", "connectors"), [(s, ", ".join(tested[s])) for s in sorted(tested)])

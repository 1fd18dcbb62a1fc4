"""Definition of a test case: its part of a plan, and locations in the file."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.errors import PlanError
from penstock.core.location import Location
from penstock.plan.model import Plan
from penstock.spec.case_models import TestCase


@dataclass(frozen=True)
class CaseDefinition:
    """A test case of a plan, by its index in `tests`."""

    plan: Plan
    index: int

    def __str__(self) -> str:
        return self.spec.name

    @property
    def spec(self) -> TestCase:
        return self.plan.spec.tests[self.index]

    @property
    def where(self) -> Location:
        """The location of the name."""
        return self.locate("name")

    def locate(self, *route: str | int) -> Location:
        """Returns the location of a part of the case."""
        return self.plan.pipeline.source_map.value(("tests", self.index, *route))

    def nodes_to_capture(self) -> list[str]:
        """Returns the nodes of `expect` and `dead_letters`.

        Includes all sinks if the case expects an error, names no node, or expects a dead letter
        of any node. Raises PlanError for expected rows of a static table.
        """
        dead_letters = self.spec.dead_letters or ()
        names = [*self.spec.expect, *(letter.node for letter in dead_letters if letter.node)]
        any_node = any(letter.node is None for letter in dead_letters)
        if self.spec.error or not names or any_node:
            names += [node.name for node in self.plan.of("sink")]
        for name in self.spec.expect:
            if name not in self.plan.streams:
                raise PlanError(
                    f'expected the name of a stream, found the static table "{name}"',
                    code="no-stream", where=self.locate("expect", name),
                    hint=f'Expect the rows of a node that reads "{name}".',
                )  # fmt: skip
        return names

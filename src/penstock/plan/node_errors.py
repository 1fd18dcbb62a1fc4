"""Errors of nodes of a plan."""

from __future__ import annotations

from penstock.core.errors import OptionError, PlanError
from penstock.plan.model import Plan
from penstock.plan.node import Node


def node_error(node: Node, problem: str, code: str, hint: str | None) -> PlanError:
    """Returns an error at the definition of a node, whose label is the subject of `problem`."""
    return PlanError(f"{node.label} {problem}", code=code, hint=hint, where=node.where)


def option_error(
    plan: Plan, node: Node, problem: str, code: str, hint: str | None, *option: str | int
) -> PlanError:
    """Returns an error at an option of a node, or at the option around it."""
    error = OptionError.of(*option, message=f"{node.label} {problem}", code=code, hint=hint)
    error.where = plan.locate(error, node)
    return error

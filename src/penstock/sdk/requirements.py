"""Python packages that the code of users requires."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from packaging.requirements import InvalidRequirement, Requirement

from penstock.core.errors import PlanError


def check_requirement(text: str) -> None:
    """Raises PlanError unless a requirement such as `numpy>=2` is installed."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise PlanError(
            f'expected a requirement such as "numpy>=2", found "{text}"',
            code="invalid-dependency",
        ) from error
    if requirement.marker is not None and not requirement.marker.evaluate():
        return
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        raise PlanError(
            f"the Python package {requirement.name} is not installed",
            code="missing-dependency",
            hint=f"run pip install '{text}'",
        ) from None
    if not requirement.specifier.contains(found, prereleases=True):
        raise PlanError(
            f"the Python package {requirement.name} has version {found}, expected "
            f"{requirement.specifier}",
            code="missing-dependency",
            hint=f"run pip install '{text}'",
        )

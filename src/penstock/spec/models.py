"""The model of a pipeline: the source of validation, of the JSON Schema and of the docs."""

from __future__ import annotations

from typing import Any

from penstock.spec.case_models import TestCase
from penstock.spec.function_models import FunctionSpec
from penstock.spec.model_types import NameList, PathList, StrictModel
from penstock.spec.node_models import (
    DeadLetterSpec,
    SideOutputSpec,
    SinkSpec,
    SourceSpec,
    TransformSpec,
)
from penstock.spec.runtime_models import Runtime


class PipelineSpec(StrictModel):
    """A pipeline file."""

    name: str | None = None
    """The name of the pipeline. Defaults to the name of the file."""
    description: str | None = None
    """A description of the pipeline."""
    include: NameList = []
    """Files to merge into this file: paths or patterns, relative to this file."""
    connections: dict[str, dict[str, Any]] = {}
    """Options shared by several nodes, by name."""
    sources: dict[str, SourceSpec] = {}
    """Sources, by name."""
    transforms: dict[str, TransformSpec] = {}
    """Transforms, by name."""
    sinks: dict[str, SinkSpec] = {}
    """Sinks, by name. A sink may have the name of a source or transform. Commands, test cases and
    metrics then name the sink `sinks.NAME`."""
    functions: dict[str, FunctionSpec] = {}
    """Functions that SQL can call, by name."""
    function_files: PathList = []
    """Python files with functions that SQL can call: those with a decorator of `penstock`."""
    plugins: PathList = []
    """Python files with components and functions of this pipeline: classes with the decorator
    `plugin`, and functions with one of `penstock`. `penstock check` runs these files."""
    side_outputs: dict[str, SideOutputSpec] = {}
    """Observers of nodes, by name. They do not change the rows of sinks."""
    dead_letter: DeadLetterSpec | None = None
    """The sink of dead letters, in place of the state directory."""
    runtime: Runtime = Runtime()
    """Settings of the runtime."""
    tests: list[TestCase] = []
    """Test cases for `penstock test`."""

"""The tools of the server of assistants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal

from mcp_types import ToolAnnotations
from pydantic import Field

from penstock.core.version import __version__
from penstock.mcp import documentation
from penstock.mcp.answers import answer
from penstock.mcp.local import LocalPipelines
from penstock.mcp.pipelines import Pipelines
from penstock.mcp.remote import RemotePipelines
from penstock.mcp.server import ToolServer
from penstock.sdk.describe import describe as describe_type
from penstock.sdk.describe import describe_all, shared_options

INSTRUCTIONS = """\
Penstock runs declarative pipelines in YAML or SQL on Apache Spark: sources, transforms, sinks.
List the pipelines, read one, and check each change before it is written. Errors have a code, a
place, a hint, and fixes. describe and documentation have the options of all components.
"""
READ = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITE = ToolAnnotations(read_only_hint=False, destructive_hint=True)
RUNS = ("preview_node", "test_pipeline")
WRITES = ("write_pipeline", "replay_dead_letters")
OF_SERVERS = ("start_pipeline", "stop_pipeline")
"""The tools that depend on the command: those of files, those that write, and those of a server."""
_FILES = "Start penstock mcp with the directory of the pipelines, and without --server."
_WRITES = "Start penstock mcp with --allow-writes."
_SERVER = "Start penstock mcp with --server URL and --allow-writes."
Name = Annotated[str, Field(max_length=300, description="The name of a pipeline, or its file.")]
Text = Annotated[str, Field(max_length=500_000, description="A whole text, in YAML or SQL.")]
Kind = Literal["source", "transform", "sink", "format", "side_output"]
Limit = Annotated[int, Field(ge=1, le=100)]


def make_server(pipelines: Pipelines, *, allow_writes: bool) -> ToolServer:
    """Returns the server with its tools. Without `allow_writes` none of them writes."""
    is_local = isinstance(pipelines, LocalPipelines)
    server = ToolServer(
        "penstock", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING",
        withheld=withheld_tools(is_local=is_local, allow_writes=allow_writes),
    )  # fmt: skip
    _add_documentation(server)
    _add_reading(server, pipelines)
    if isinstance(pipelines, LocalPipelines):
        _add_runs(server, pipelines)
    if allow_writes:
        _add_writing(server, pipelines)
    return server


def withheld_tools(*, is_local: bool, allow_writes: bool) -> dict[str, str]:
    """Returns the tools that a server does not offer, each with the way to it."""
    withheld = {} if allow_writes else dict.fromkeys((*WRITES, *OF_SERVERS), _WRITES)
    return withheld | (
        dict.fromkeys(OF_SERVERS, _SERVER) if is_local else dict.fromkeys(RUNS, _FILES)
    )


def _add(server: ToolServer, hints: ToolAnnotations) -> Callable[[Callable[..., Any]], None]:
    def add(function: Callable[..., Any]) -> None:
        server.add_tool(answer(function), annotations=hints, structured_output=False)

    return add


def _add_documentation(server: ToolServer) -> None:
    add = _add(server, READ)

    @add
    def list_components() -> dict[str, dict[str, str]]:
        """Lists all sources, transforms, sinks, formats and side outputs, each with its purpose."""
        return {kind: {e.type: e.summary for e in all_} for kind, all_ in describe_all().items()}

    @add
    def describe(kind: Kind, type: Annotated[str, Field(max_length=100)]) -> dict[str, Any]:
        """Describes a component: options, delivery guarantees, and an example."""
        found = asdict(describe_type(kind, type))
        return {**found, "options_of_all": [asdict(each) for each in shared_options(kind)]}

    @add
    def search_documentation(
        query: Annotated[str, Field(max_length=200)],
    ) -> dict[str, str]:
        """Searches components, options, functions of SQL and error codes by words."""
        return documentation.search(query)


def _add_reading(server: ToolServer, pipelines: Pipelines) -> None:
    add = _add(server, READ)

    @add
    def list_pipelines() -> list[dict[str, Any]]:
        """Lists the pipelines; those of a server with their health, the worst first."""
        return pipelines.all()

    @add
    def read_pipeline(name: Name) -> dict[str, Any]:
        """Returns the text of a pipeline."""
        return pipelines.read(name)

    @add
    def check_pipeline(
        name: Name, text: Text | None = None, columns: bool = False
    ) -> dict[str, Any]:
        """Checks a pipeline, or another text for it, and writes nothing.

        Returns errors with places, hints and fixes. With columns, Spark infers the columns of
        every node, which takes seconds. An unknown name such as orders.yaml is that of a new
        pipeline.
        """
        return pipelines.check(name, text, columns=columns)

    @add
    def explain_pipeline(name: Name) -> dict[str, Any]:
        """Explains a pipeline: nodes, declared columns, queries, state, guarantees of sinks."""
        return pipelines.explain(name)

    @add
    def list_dead_letters(
        name: Name, node: str | None = None, code: str | None = None, limit: Limit = 20
    ) -> dict[str, Any]:
        """Lists the newest records that failed, with reasons and payloads, and their numbers."""
        return pipelines.dead_letters(name, node, code, limit)


def _add_runs(server: ToolServer, pipelines: LocalPipelines) -> None:
    add = _add(server, READ)

    @add
    def preview_node(
        name: Name, node: Annotated[str, Field(max_length=100)], rows: Limit = 10,
        seconds: Annotated[float, Field(gt=0, le=120)] = 30,
    ) -> dict[str, Any]:  # fmt: skip
        """Returns rows of a node of a pipeline. Reads its sources, and writes to no sink."""
        return pipelines.preview(name, node, rows, seconds)

    @add
    def test_pipeline(
        name: Name, case: Annotated[str, Field(max_length=200)] | None = None
    ) -> dict[str, Any]:
        """Runs the test cases of a pipeline without external systems, by default all of them."""
        return pipelines.test(name, case)


def _add_writing(server: ToolServer, pipelines: Pipelines) -> None:
    add = _add(server, WRITE)

    @add
    def write_pipeline(
        name: Name, text: Text, note: Annotated[str, Field(max_length=500)] = ""
    ) -> dict[str, Any]:
        """Writes a valid text as a pipeline. On a server it becomes a version with the note.

        A running pipeline of a server restarts, and its state continues.
        """
        return pipelines.write(name, text, note)

    @add
    def replay_dead_letters(name: Name, ids: list[str] | None = None) -> dict[str, Any]:
        """Replays dead letters of a stopped pipeline by ID, by default all of them."""
        return pipelines.replay(name, ids)

    if not isinstance(pipelines, RemotePipelines):
        return

    @add
    def start_pipeline(name: Name) -> dict[str, Any]:
        """Starts a pipeline of the server."""
        return pipelines.start(name)

    @add
    def stop_pipeline(name: Name) -> dict[str, Any]:
        """Stops a pipeline of the server after its current batch."""
        return pipelines.stop(name)

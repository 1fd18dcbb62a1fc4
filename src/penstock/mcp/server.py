"""Server of tools whose errors name the tool, the argument and the expected values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from penstock.core.error_report import format_error
from penstock.core.errors import UserError, ValidationErrors
from penstock.core.text import did_you_mean


class ToolServer(MCPServer):
    """A server that rejects unknown tools and arguments, with the nearest name."""

    withheld: Mapping[str, str]
    """The ways to further tools, which this server does not offer, by name."""

    def __init__(self, *args: Any, withheld: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.withheld = withheld

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Calls a tool. Raises ToolError with the report of an error of Penstock."""
        tools = {tool.name: tool.input_schema for tool in await self.list_tools()}
        if name in self.withheld:
            raise _tool_error(
                _invalid(f'the tool "{name}" is not offered here', self.withheld[name])
            )
        if name not in tools:
            raise _tool_error(_invalid(f'there is no tool "{name}"', did_you_mean(name, tools)))
        known = tools[name].get("properties", {})
        unknown = [each for each in arguments if each not in known]
        if unknown:
            raise _tool_error(
                *(
                    _invalid(f'{name} has no argument "{each}"', did_you_mean(each, known))
                    for each in unknown
                )
            )
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise _tool_error(*_argument_errors(name, error.__cause__)) from error
            raise


def _argument_errors(tool: str, error: ValidationError) -> Iterator[UserError]:
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(map(str, each["loc"]))
        if each["type"] == "missing":
            yield _invalid(f'{tool} requires the argument "{place}"')
        else:
            yield _invalid(f'argument "{place}" of {tool}: {each["msg"]}')


def _invalid(message: str, hint: str | None = None) -> UserError:
    return UserError(message, code="invalid-request", hint=hint)


def _tool_error(*errors: UserError) -> ToolError:
    return ToolError(format_error(errors[0] if len(errors) == 1 else ValidationErrors(errors)))

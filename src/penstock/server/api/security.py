"""Authentication and authorization of requests, and protection against other sites.

Every route names the right that it requires with `requires`. `unprotected_routes` finds those that
do not, and the application does not start with one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.core.errors import PenstockError
from penstock.server.api.context import parts_of
from penstock.server.api.invalid_requests import unknown_parameter
from penstock.server.store.accounts import Kind, Right, User

COOKIE = "penstock_session"
MAX_BODY = 1024 * 1024
TOO_LARGE = f"the body is too large; expected at most {MAX_BODY:,} bytes"
SMALLER_BODY = "Move data from the text of the pipeline to a file."
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'; object-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""Headers of every response."""
_ENCODED = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


class RequestError(PenstockError):
    """A request that is answered with an error of the client. `status` is that of HTTP."""

    def __init__(self, status: int, message: str, *, code: str, hint: str | None = None) -> None:
        super().__init__(message, code=code, hint=hint)
        self.status = status


def requires(right: Right) -> Any:
    """Returns the dependency of a route that requires a right. Its value is the user.

    Raises RequestError with the status 401 without a valid token, and 403 without the right.
    """

    async def authorize(request: Request) -> User:
        user = await current_user(request)
        if user is None:
            raise RequestError(
                401, "the request has no valid token", code="not-authenticated",
                hint="Log in, or pass a token in the header Authorization: Bearer TOKEN.",
            )  # fmt: skip
        if not user.may(right):
            raise RequestError(
                403, f'the user "{user.name}" does not have the right {right}', code="forbidden",
                hint="Ask a user with the right admin.",
            )  # fmt: skip
        if (unknown := unknown_parameter(request)) is not None:
            name, hint = unknown
            raise RequestError(
                422, f'the path has no parameter "{name[:80]}"', code="invalid-request", hint=hint
            )
        request.state.user = user
        return user

    authorize.right = right  # type: ignore[attr-defined]
    return Depends(authorize)


Viewer = Annotated[User, requires("view")]
DataReader = Annotated[User, requires("data")]
Operator = Annotated[User, requires("operate")]
Editor = Annotated[User, requires("edit")]
Admin = Annotated[User, requires("admin")]


async def current_user(request: Request) -> User | None:
    """Returns the user of the bearer token, or else of the session cookie; None without one."""
    accounts = parts_of(request).accounts
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    kind: Kind = "token"
    if scheme.lower() != "bearer" or not token:
        kind, token = "session", request.cookies.get(cookie_name(request), "")
    if not token:
        return None
    known = accounts.known_user_of(token.strip(), (kind,))
    return known or await run_in_threadpool(accounts.user_of, token.strip(), (kind,))


async def is_permitted(request: Request) -> bool:
    """Returns whether the user of a request under way still has the right to its route."""
    user, right = await current_user(request), right_of(request.scope["route"])
    return user is not None and right is not None and user.may(right)  # type: ignore[arg-type]


def cookie_name(request: Request) -> str:
    """Returns the name of the cookie, which differs for servers on other ports of a host."""
    return f"{COOKIE}_{parts_of(request).settings.port}"


def right_of(route: APIRoute) -> str | None:
    """Returns the right that a route requires; None for a route without one."""
    for dependency in route.dependant.dependencies:
        right = getattr(dependency.call, "right", None)
        if right is not None:
            return str(right)
    return None


def unprotected_routes(routers: Iterable[APIRouter], open_paths: Iterable[str]) -> list[str]:
    """Returns the paths of routes that require no right and are not among `open_paths`."""
    known = set(open_paths)
    routes = [route for router in routers for route in router.routes]
    return [
        getattr(route, "path", "?")
        for route in routes
        if not (isinstance(route, APIRoute) and (right_of(route) or route.path in known))
    ]


class Protection:
    """ASGI middleware: allowed hosts, no requests of other sites, bodies of JSON, headers."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                added = [header for header in _ENCODED if header[0] not in present]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        failure = self._check(request)
        if failure is not None:
            await failure(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _check(self, request: Request) -> Response | None:
        """Returns the response to a request that is not permitted; None for others."""
        host = request.headers.get("host", "")
        if _without_port(host) not in self._hosts:
            return _error(
                421, "invalid-host", f'the server has no name "{host[:100]}"',
                "Use a name of the machine, or permit this one with --allow-host.",
            )  # fmt: skip
        if request.method in SAFE_METHODS:
            return None
        site = request.headers.get("sec-fetch-site", "same-origin")
        origin = request.headers.get("origin")
        same = origin is None or _without_port(origin.partition("://")[2]) == _without_port(host)
        if site not in ("same-origin", "none") or not same:
            return _error(
                403, "other-site", "the request comes from another site",
                "Use the console of the server, or a token without the header Origin.",
            )  # fmt: skip
        length = request.headers.get("content-length", "0")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if (length != "0" or "transfer-encoding" in request.headers) and kind != "application/json":
            return _error(
                415, "json-required", "expected a body of application/json",
                "Send JSON with the header Content-Type: application/json.",
            )  # fmt: skip
        if length.isdecimal() and int(length[:20]) > MAX_BODY:
            return _error(413, "body-too-large", TOO_LARGE, SMALLER_BODY)
        return None


def _without_port(host: str) -> str:
    """Returns the name of a header Host, in lower case, without its port."""
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdigit() and name else host.strip().lower()


def _error(status: int, code: str, message: str, hint: str) -> Response:
    return JSONResponse({"errors": [{"code": code, "message": message, "hint": hint}]}, status)

"""Routes of the documentation site, below `/docs`.

Texts are stored compressed. A file is read for each request, so that pages use no memory.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from penstock.server.console.assets import INDEX, media_type
from penstock.server.console.routes import accepts_gzip

PREFIX = "/docs"
PAGE = PREFIX + "/{path:path}"
OPEN_PATHS = (PREFIX, PAGE)
"""The routes that need no right. They have no data."""
NOT_FOUND = "404.html"
NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Penstock</title>
<h1>The documentation is not built</h1>
<p>In a checkout of Penstock, build it and start the server again:</p>
<pre>./dev docs --site</pre>
<p>The package <code>penstock[server]</code> contains it.</p>
</html>
"""

router = APIRouter(include_in_schema=False)


@router.api_route(PREFIX, methods=["GET", "HEAD"])
def documentation() -> Response:
    """Redirects to the first page, whose links are relative."""
    return RedirectResponse(PREFIX + "/", 308)


@router.api_route(PAGE, methods=["GET", "HEAD"])
def documentation_file(path: str, request: Request) -> Response:
    """Returns a page or a file of the site."""
    known = built_documentation()
    if not known:
        return HTMLResponse(NOT_BUILT, headers={"Cache-Control": "no-store"})
    name = f"{path}{INDEX}" if not path or path.endswith("/") else path
    if name not in known and f"{name}/{INDEX}" in known:
        return RedirectResponse(f"{PREFIX}/{path}/", 308)
    if name not in known:
        if not name.endswith(".html") or NOT_FOUND not in known:
            raise HTTPException(404)
        return _answer(NOT_FOUND, known[NOT_FOUND], request, 404)
    return _answer(name, known[name], request)


@cache
def built_documentation() -> Mapping[str, Traversable]:
    """Returns the files of the built site by their path; none if it is not built."""
    static = files("penstock.server.documentation") / "static"
    return dict(_files(static, "")) if static.is_dir() else {}


def _files(directory: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in directory.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name.removesuffix(".gz"), entry


def _answer(name: str, file: Traversable, request: Request, status: int = 200) -> Response:
    content, headers = file.read_bytes(), {"Vary": "Accept-Encoding"}
    is_hashed = name.startswith("assets/") and name.count(".") > 1
    headers["Cache-Control"] = "public, max-age=31536000, immutable" if is_hashed else "no-cache"
    if file.name.endswith(".gz"):
        if accepts_gzip(request):
            headers["Content-Encoding"] = "gzip"
        else:
            content = gzip.decompress(content)
    return Response(content, status, headers=headers, media_type=media_type(name))

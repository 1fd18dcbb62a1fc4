"""Routes of the console: its files, and its page for all paths of other routes.

Files have hashed names and are kept by browsers. The page is not, so that a new version of the
server shows its own console.
"""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from penstock.server.console.assets import ASSETS, Assets, built_files, load_assets

PAGE = "/{path:path}"
FILE = f"/{ASSETS}/{{name}}"
OPEN_PATHS = (FILE, PAGE)
"""The routes that need no right. They have no data."""
RESERVED = ("api", ASSETS)
"""The first parts of paths that are never pages."""
NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Penstock</title>
<h1>The console is not built</h1>
<p>In a checkout of Penstock, build it and start the server again:</p>
<pre>./dev console</pre>
<p>The package <code>penstock[server]</code> contains the console. The API is at
<a href="/api/v1/openapi.json">/api/v1/openapi.json</a>.</p>
</html>
"""

router = APIRouter(include_in_schema=False)


@router.api_route(FILE, methods=["GET", "HEAD"])
def console_file(name: str, request: Request) -> Response:
    """Returns a file of the console."""
    assets = built_assets()
    asset = assets.files.get(name) if assets else None
    if asset is None:
        raise HTTPException(404)
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding",
    }  # fmt: skip
    if asset.compressed is not None and accepts_gzip(request):
        headers["Content-Encoding"] = "gzip"
        return Response(asset.compressed, headers=headers, media_type=asset.media_type)
    return Response(asset.content, headers=headers, media_type=asset.media_type)


@router.api_route(PAGE, methods=["GET", "HEAD"])
def console_page(path: str) -> Response:
    """Returns the page of the console, which shows the page of the path."""
    if path.partition("/")[0] in RESERVED:
        raise HTTPException(404)
    assets = built_assets()
    content = NOT_BUILT if assets is None else assets.page
    return HTMLResponse(content, headers={"Cache-Control": "no-store"})


@cache
def built_assets() -> Assets | None:
    """Returns the files of the console, read once; None if it is not built."""
    return load_assets(built_files())


def accepts_gzip(request: Request) -> bool:
    """Returns whether a client accepts compressed content."""
    codings = request.headers.get("accept-encoding", "").lower().split(",")
    return any(each.partition(";")[0].strip() == "gzip" for each in codings)

"""Figures of the server and its console, beside their limits.

    python bench/console.py [--json] [--pipelines 200] [--seconds 60] [--browser] [--previews]

A process holds the states of all pipelines, as their runs would. One more process sends 500
requests a second. `--browser` also measures pages in Chromium, and `--previews` a hundred previews
that are asked at once, in Spark. Exits with 1 if a figure exceeds its limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "control_plane"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from previews import COUNT, ask_for_previews
from served import Served, serving

RATE = 500
STATIC = Path(__file__).resolve().parents[1] / "src" / "penstock" / "server" / "console" / "static"


@dataclass(frozen=True)
class Figure:
    """A measured value and its limit. `limit` is None for a value that is only reported."""

    name: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def holds(self) -> bool:
        return self.limit is None or self.value <= self.limit


def figures(served: Served, seconds: float, *, browser: bool, previews: bool) -> Iterator[Figure]:
    """Yields all figures. The idle ones are first."""
    time.sleep(40)  # the first reading of all files is over, and its worker has ended
    memory, cpu = served.usage(20)
    yield Figure("memory of the server, idle", memory, "MB", 150)
    yield Figure("CPU of the server, idle", 100 * cpu, "% of a core", 5)
    yield from list_figures(served)
    yield from cost_figures(served)
    yield from load_figures(served, seconds)
    if previews:
        yield from preview_figures(served)
    yield Figure("restart until all runs are adopted", served.restart(), "s")
    yield from asset_figures()
    if browser:
        yield from page_figures(served)


def list_figures(served: Served) -> Iterator[Figure]:
    """Yields the time of the list of all pipelines, and the size of a message of changes."""
    times = []
    for _ in range(20):
        began = time.perf_counter()
        served.get("/api/v1/pipelines")
        times.append(time.perf_counter() - began)
    yield Figure("list of all pipelines, median", 1000 * sorted(times)[10], "ms", 50)
    yield Figure("message of changes of 2 s", largest_message(served) / 1000, "kB", 20)


def largest_message(served: Served) -> int:
    """Returns the size of the largest message of changes, after the first one with everything."""
    import http.client

    connection = http.client.HTTPConnection(served.address.partition("://")[2], timeout=30)
    connection.request(
        "GET", "/api/v1/events",
        headers={"Authorization": f"Bearer {served.token}", "Accept-Encoding": "gzip"},
    )  # fmt: skip
    stream, sizes = connection.getresponse(), []
    until = time.monotonic() + 9
    while time.monotonic() < until:
        line = stream.readline()
        if line.startswith(b"data: "):
            sizes.append(len(line))
    connection.close()
    return max(sizes[1:], default=0)


def cost_figures(served: Served) -> Iterator[Figure]:
    """Yields the CPU of each request, to which other work of the machine does not add."""
    id = served.get("/api/v1/pipelines")[5]["id"]
    for name, path in (("one pipeline", f"/api/v1/pipelines/{id}"), ("the user", "/api/v1/me")):
        before = sum(served.process.cpu_times()[:2])
        for _ in range(200):
            served.get(path)
        cost = (sum(served.process.cpu_times()[:2]) - before) / 200
        yield Figure(f"CPU of a request for {name}", 1000 * cost, "ms", 1000 / RATE)


def load_figures(served: Served, seconds: float) -> Iterator[Figure]:
    """Yields the latency of requests at a constant rate, from a process of its own."""
    words = [sys.executable, __file__, "--client", served.address, "--seconds", str(seconds)]
    answer = subprocess.run(words, input=served.token, capture_output=True, text=True, check=True)
    found = json.loads(answer.stdout)
    yield Figure("requests a second, answered", found["rate"], "1/s")
    yield Figure("share of the rate that was not reached", found["missed"], "%", 2)
    yield Figure("latency of requests, median", found["median"], "ms")
    yield Figure("latency of requests, p99", found["p99"], "ms", 100)
    yield Figure("answers with a status of 500 or above", found["errors"], "", 0)


async def send(address: str, token: str, seconds: float) -> dict[str, float]:
    """Sends requests at a constant rate. The latency counts from the time of the plan."""
    import aiohttp

    headers = {"Authorization": f"Bearer {token}"}
    paths: list[str] = ["/health", "/api/v1/me"]
    times: list[float] = []
    errors = 0
    connector = aiohttp.TCPConnector(limit=64)
    async with aiohttp.ClientSession(address, headers=headers, connector=connector) as session:
        async with session.get("/api/v1/pipelines") as answer:
            ids = [each["id"] for each in await answer.json()]
        paths += [f"/api/v1/pipelines/{id}" for id in ids[:20]]
        paths += [f"/api/v1/pipelines/{id}/runs" for id in ids[:20]]

        async def call(path: str, due: float) -> None:
            nonlocal errors
            try:
                async with session.get(path) as answer:
                    await answer.read()
                    errors += answer.status >= 500
            except aiohttp.ClientError:
                errors += 1
            times.append(time.perf_counter() - due)

        began = time.perf_counter()
        calls = []
        for number in range(int(RATE * seconds)):
            due = began + number / RATE
            if (pause := due - time.perf_counter()) > 0:
                await asyncio.sleep(pause)
            calls.append(asyncio.create_task(call(paths[number % len(paths)], due)))
        await asyncio.gather(*calls)
        elapsed = time.perf_counter() - began
    times.sort()
    rate = len(times) / elapsed
    return {
        "rate": rate, "missed": max(0.0, 100 * (1 - rate / RATE)),
        "median": 1000 * times[len(times) // 2], "p99": 1000 * times[int(len(times) * 0.99)],
        "errors": errors,
    }  # fmt: skip


def preview_figures(served: Served) -> Iterator[Figure]:
    """Yields the outcome of many previews at once, and the memory of the server meanwhile."""
    with watched(served) as largest:
        found = ask_for_previews(served.address, served.token)
    yield Figure("previews at once that were not answered", COUNT - found.answered, "", 0)
    yield Figure("previews with an unclear answer", found.unclear, "", 0)
    yield Figure("rejections with a time to try again", found.rejected, "")
    yield Figure("time until all previews are answered", found.seconds, "s")
    yield Figure("memory of the server itself, at most", largest["server"], "MB", 250)
    yield Figure("memory with its Spark sessions, at most", largest["all"], "MB", 3000)
    for kind in sorted(found.kinds):
        print(f"unclear answer: {kind}", file=sys.stderr)


@contextmanager
def watched(served: Served) -> Iterator[dict[str, float]]:
    """Observes the memory of the server, and with its children, during the block."""
    largest, ended = {"server": 0.0, "all": 0.0}, threading.Event()

    def watch() -> None:
        while not ended.wait(1.0):
            own, whole = served.memory()
            largest["server"] = max(largest["server"], own)
            largest["all"] = max(largest["all"], whole)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield largest
    finally:
        ended.set()
        thread.join()


def asset_figures() -> Iterator[Figure]:
    """Yields the sizes of the first page, compressed."""
    manifest: dict[str, Any] = json.loads((STATIC / "manifest.json").read_text())
    entry = next(each for each in manifest.values() if each.get("isEntry"))
    names, styles = {entry["file"]}, set(entry.get("css", ()))
    pending = list(entry.get("imports", ()))
    while pending:
        part = manifest[pending.pop()]
        if part["file"] not in names:
            names.add(part["file"])
            styles.update(part.get("css", ()))
            pending += part.get("imports", ())
    for label, files, limit in (("script", names, 160), ("style", styles, 16)):
        size = sum((STATIC / f"{name}.gz").stat().st_size for name in files)
        yield Figure(f"{label} of the first page, gzip", size / 1000, "kB", limit)


def page_figures(served: Served) -> Iterator[Figure]:
    """Yields the times of pages in a browser with an empty cache."""
    from servers.browser import chromium

    with chromium() as browser:
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.set_extra_http_headers({"Authorization": f"Bearer {served.token}"})
        began = time.perf_counter()
        page.goto(served.address)
        page.get_by_role("row").nth(1).wait_for()
        yield Figure("first page with all pipelines, cold", time.perf_counter() - began, "s", 1)
        large = next(e for e in served.get("/api/v1/pipelines") if e["name"].startswith("shop-000"))
        began = time.perf_counter()
        page.goto(f"{served.address}/pipelines/{large['id']}")
        page.locator(".react-flow__node").first.wait_for()
        yield Figure("graph of 50 nodes, with its page", time.perf_counter() - began, "s", 1)
        yield Figure("frames while the graph moves, p95", frames(page), "ms", 50)
        context.close()


def frames(page: Any) -> float:
    """Returns the 95th percentile of the time between frames while the graph is dragged."""
    page.evaluate(
        "() => { window.frames_ = []; let last = performance.now();"
        " const next = (now) => { window.frames_.push(now - last); last = now;"
        " requestAnimationFrame(next); }; requestAnimationFrame(next); }"
    )
    box = page.locator(".react-flow__pane").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + box["height"] - 60)
    page.mouse.down()
    for step in range(60):
        page.mouse.move(box["x"] + 60 + 5 * step, box["y"] + box["height"] - 60 - 2 * step)
        page.wait_for_timeout(16)
    page.mouse.up()
    times = sorted(page.evaluate("window.frames_"))
    return float(times[int(len(times) * 0.95)])


def report(found: Sequence[Figure]) -> None:
    """Prints figures beside their limits."""
    for each in found:
        limit = "" if each.limit is None else f"at most {each.limit:g}"
        mark = "" if each.holds else "  EXCEEDED"
        print(f"{each.name:44} {each.value:9.1f} {each.unit:12} {limit:14}{mark}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pipelines", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--previews", action="store_true")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        print(json.dumps(asyncio.run(send(options.client, sys.stdin.read(), options.seconds))))
        return 0
    with tempfile.TemporaryDirectory() as directory:
        with serving(Path(directory).resolve(), options.pipelines) as served:
            found = list(figures(
                served, options.seconds, browser=options.browser, previews=options.previews
            ))  # fmt: skip
        with serving(Path(directory).resolve() / "ten", 10) as served:
            found.append(Figure("restart until ten runs are adopted", served.restart(), "s", 3))
    if options.json:
        print(json.dumps([asdict(each) for each in found]))
    else:
        report(found)
    return 0 if all(each.holds for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())

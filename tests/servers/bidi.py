"""Program that starts Firefox for Playwright: `bidi.py FIREFOX ARGUMENT ...`.

Playwright sets media features by WebDriver BiDi. Firefox 153 has no such command, so Playwright
opens no page. The program passes all messages between both, and answers this command itself.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, web

UNKNOWN_TO_FIREFOX = "emulation.setMediaFeaturesOverride"
ADDRESS = re.compile(rb"WebDriver BiDi listening on ws://([\w.:]+)")
End = web.WebSocketResponse | ClientWebSocketResponse


async def main(firefox: str, arguments: list[str]) -> int:
    process = await asyncio.create_subprocess_exec(
        firefox, *arguments, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    async for line in process.stderr:
        found = ADDRESS.match(line)
        if found is None:
            sys.stderr.write(line.decode(errors="replace"))
            continue
        port = await _listen(found[1].decode())
        print(f"WebDriver BiDi listening on ws://127.0.0.1:{port}", file=sys.stderr, flush=True)
    return await process.wait()


async def _listen(address: str) -> int:
    """Listens for Playwright. Returns the port."""

    async def session(request: web.Request) -> web.WebSocketResponse:
        near = web.WebSocketResponse(max_msg_size=0)
        await near.prepare(request)
        async with (
            ClientSession() as client,
            client.ws_connect(f"ws://{address}/session", max_msg_size=0) as far,
        ):
            ways = [asyncio.create_task(_pass(*way)) for way in ((near, far), (far, near))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
        return near

    application = web.Application()
    application.router.add_get("/session", session)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port: int = runner.addresses[0][1]
    return port


async def _pass(start: End, end: End) -> None:
    """Passes messages until an end closes."""
    async for message in start:
        if message.type is not WSMsgType.TEXT:
            continue
        if UNKNOWN_TO_FIREFOX in message.data:
            command = json.loads(message.data)
            if command.get("method") == UNKNOWN_TO_FIREFOX:
                answer = {"type": "success", "id": command["id"], "result": {}}
                await start.send_json(answer)
                continue
        await end.send_str(message.data)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2:])))

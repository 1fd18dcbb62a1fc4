"""A stand-in for the API server of Kubernetes and its nodes: pods run as processes here.

No image can be downloaded, so a real cluster cannot be had. The stand-in has the parts that Spark
uses: pods, by name and by labels, and watches over a WebSocket. A request needs the token of the
service account, and a rule of its role. A pod is a process in a mount namespace of its own, with
the host names of the cluster and a read-only root. It writes only the empty volumes of the pod.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

from servers.install import program
from servers.read_only import read_only, written_by
from servers.server import Server
from servers.spark import namespace

TOKEN = "made-up-token-of-the-service-account"
_PODS = "/api/v1/namespaces/{namespace}/pods"
_POD = f"{_PODS}/{{name}}"
_SPARK_VOLUME = "/var/data/"
"""The volumes of Spark, in whose place is a directory of the stand-in."""
_VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}
_TERM = re.compile(r"([\w./-]+) ?(!?=|in) ?(?:\(([^)]*)\)|([^,]*)),?")
"""A term of a label selector: a label, an operator, and several values or one."""
Pod = dict[str, Any]
Selector = list[tuple[str, bool, set[str]]]
"""The terms of a label selector: a label, whether its value is one of the values, the values."""


class Kubernetes(Server):
    """An API server whose service account has the rules of a role.

    `hosts` are the names by which processes in pods find this machine.
    """

    name = "kubernetes"
    title = "a stand-in for the API server of Kubernetes"

    def __init__(self, rules: Sequence[Mapping[str, Any]], hosts: Sequence[str]) -> None:
        super().__init__()
        self.hosts = self.directory.path / "hosts"
        self.hosts.write_text("".join(f"127.0.0.1 {host}\n" for host in ("localhost", *hosts)))
        (self.directory.path / "rules.json").write_text(json.dumps(rules))

    def command(self) -> Sequence[str]:
        """This file, as a program."""
        return [sys.executable, "-m", "servers.kubernetes", f"{self.port}", str(self.hosts)]

    def environment(self) -> Mapping[str, str]:
        """The variables of the image, and the modules of tests."""
        return {**image_environment(), "PYTHONPATH": str(Path(__file__).parents[1])}

    @property
    def url(self) -> str:
        """The URL of the API."""
        return f"http://127.0.0.1:{self.port}"

    def ready(self) -> None:
        """Asks for the pods."""
        self.pods("default")

    def pods(self, namespace: str) -> list[Pod]:
        """Returns the pods of a namespace."""
        path = _PODS.format(namespace=namespace)
        request = urllib.request.Request(
            self.url + path, headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            items: list[Pod] = json.load(response)["items"]
        return items

    def add(self, namespace: str, pod: Mapping[str, Any]) -> None:
        """Adds a pod that runs already."""
        path = _PODS.format(namespace=namespace)
        body = json.dumps({**pod, "status": {"phase": "Running", "podIP": "127.0.0.1"}}).encode()
        request = urllib.request.Request(
            self.url + path, body, {"Authorization": f"Bearer {TOKEN}"}
        )
        urllib.request.urlopen(request, timeout=60).close()

    def denied(self) -> list[str]:
        """Returns the requests that no rule permits."""
        path = self.directory.path / "denied"
        return path.read_text().splitlines() if path.exists() else []


class _Pods:
    """The pods and their watches."""

    def __init__(self, directory: Path, hosts: Path) -> None:
        self._directory, self._hosts = directory, hosts
        self._rules: list[dict[str, Any]] = json.loads((directory / "rules.json").read_text())
        self._pods: dict[str, Pod] = {}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._watches: list[tuple[Selector, asyncio.Queue[Any]]] = []
        self._version = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @web.middleware
    async def authorize(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Rejects requests without the token, and those that no rule permits."""
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _status(401, "Unauthorized")
        verb = _VERBS[request.method]
        if "name" not in request.match_info:
            verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
            verb = "watch" if request.query.get("watch") == "true" else verb
        permitted = any(
            verb in rule["verbs"] and "pods" in rule["resources"] and "" in rule["apiGroups"]
            for rule in self._rules
        )
        if not permitted or "/pods" not in request.path:
            with (self._directory / "denied").open("a") as file:
                file.write(f"{verb} {request.path}\n")
            return _status(403, "Forbidden")
        response: web.StreamResponse = await handler(request)
        return response

    async def create(self, request: web.Request) -> web.Response:
        pod: Pod = await request.json()
        metadata = pod["metadata"]
        name = metadata["name"]
        if name in self._pods:
            return _status(409, "AlreadyExists")
        metadata |= {"uid": str(uuid.uuid4()), "namespace": request.match_info["namespace"]}
        metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
        self._pods[name] = pod
        if "status" not in pod:
            pod["status"] = {"phase": "Pending", "podIP": "127.0.0.1"}
            task = asyncio.create_task(self._run(name, pod))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._emit("ADDED", pod)
        return web.json_response(pod, status=201)

    async def list(self, request: web.Request) -> web.StreamResponse:
        labels = _labels(request)
        if request.query.get("watch") == "true":
            return await self._watch(request, labels)
        items = [pod for pod in self._pods.values() if _matches(pod, labels)]
        metadata = {"resourceVersion": f"{self._version}"}
        return web.json_response(
            {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}
        )

    async def get(self, request: web.Request) -> web.Response:
        pod = self._pods.get(request.match_info["name"])
        return web.json_response(pod) if pod else _status(404, "NotFound")

    async def patch(self, request: web.Request) -> web.Response:
        pod = self._pods.get(request.match_info["name"])
        if pod is None:
            return _status(404, "NotFound")
        _merge(pod, await request.json())
        self._emit("MODIFIED", pod)
        return web.json_response(pod)

    async def delete(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name")
        labels = _labels(request)
        chosen = [name] if name else [n for n, p in self._pods.items() if _matches(p, labels)]
        found = [pod for each in chosen if (pod := self._pods.pop(each, None))]
        for pod in found:
            self.kill(pod["metadata"]["name"])
            self._emit("DELETED", pod)
        return web.json_response(found[0]) if name and found else _status(200, "Success")

    async def _watch(self, request: web.Request, labels: Selector) -> web.WebSocketResponse:
        socket, queue = web.WebSocketResponse(), asyncio.Queue[Any]()
        await socket.prepare(request)
        watch = labels, queue
        self._watches.append(watch)
        closed = asyncio.create_task(_until_closed(socket))
        try:
            while not socket.closed:
                event = asyncio.create_task(queue.get())
                await asyncio.wait({event, closed}, return_when=asyncio.FIRST_COMPLETED)
                if not event.done():
                    event.cancel()
                    break
                await socket.send_json(event.result())
        finally:
            self._watches.remove(watch)
            closed.cancel()
        return socket

    async def _run(self, name: str, pod: Pod) -> None:
        """Runs the container of a pod as a process."""
        (container,) = pod["spec"]["containers"]
        fields = {"status.podIP": "127.0.0.1", "metadata.name": name}
        variables = {
            each["name"]: each.get("value") or fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
            for each in container.get("env", [])
        }
        work = self._directory / name
        work.mkdir()
        variables |= {"SPARK_LOCAL_DIRS": str(work)}
        entry = [sys.executable, "-m", "penstock.deploy.image.entrypoint", *container["args"]]
        volumes = [path for path in written_by(pod["spec"]) if not path.startswith(_SPARK_VOLUME)]
        (home,) = (path for path in volumes if path != "/tmp")
        kept = [str(work), str(Path(home).parent)]
        entry = read_only(entry, kept, [str(work), *volumes])
        with (work / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *pod_command(self._hosts, name, entry), cwd=home, stdout=log, stderr=log,
                start_new_session=True, env={**os.environ, **variables},
            )  # fmt: skip
        self._processes[name] = process
        self._change(pod, "Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})
        code = await process.wait()
        phase = "Succeeded" if code == 0 else "Failed"
        self._change(pod, phase, {"terminated": {"exitCode": code, "reason": phase}})

    def _change(self, pod: Pod, phase: str, state: dict[str, Any]) -> None:
        (container,) = pod["spec"]["containers"]
        status = {"name": container["name"], "state": state, "ready": "running" in state}
        pod["status"] |= {"phase": phase, "containerStatuses": [status]}
        if pod["metadata"]["name"] in self._pods:
            self._emit("MODIFIED", pod)

    def _emit(self, type_: str, pod: Pod) -> None:
        self._version += 1
        pod["metadata"]["resourceVersion"] = f"{self._version}"
        for labels, queue in self._watches:
            if _matches(pod, labels):
                queue.put_nowait({"type": type_, "object": json.loads(json.dumps(pod))})

    def kill(self, name: str) -> None:
        """Kills the process of a pod, with all that it has started."""
        process = self._processes.pop(name, None)
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    async def close(self, _: web.Application) -> None:
        """Kills the processes of all pods."""
        for name in list(self._processes):
            self.kill(name)


def image_environment() -> dict[str, str]:
    """Returns the variables of the image: the Java and the Python of pods."""
    java = Path(program("java", "openjdk-17-jre-headless")).resolve()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"JAVA_HOME": str(java.parents[1]), "PATH": path}


def pod_command(hosts: Path, name: str, command: Sequence[str]) -> list[str]:
    """Returns the command that runs another one as a pod of this name. It ends with its parent."""
    script = (
        'hostname "$1" && cp "$2" "$2.$1" && echo "127.0.0.1 $1" >> "$2.$1" && '
        'mount --bind "$2.$1" /etc/hosts && shift 2 && exec "$@"'
    )
    return [
        "setpriv", "--pdeathsig", "KILL", *namespace(), "sh", "-c", script, "pod", name[-60:],
        str(hosts), *command,
    ]  # fmt: skip


async def _until_closed(socket: web.WebSocketResponse) -> None:
    async for message in socket:
        if message.type in (WSMsgType.CLOSE, WSMsgType.ERROR):
            return


def _labels(request: web.Request) -> Selector:
    """Returns the label selector of a request. Its terms are `A=B`, `A!=B` and `A in (B,C)`."""
    selector = request.query.get("labelSelector", "")
    if _TERM.sub("", selector):
        raise web.HTTPBadRequest(text=f"unsupported label selector: {selector}")
    return [
        (name, operator != "!=", set((several or value).split(",")))
        for name, operator, several, value in _TERM.findall(selector)
    ]


def _matches(pod: Pod, labels: Selector) -> bool:
    found = pod["metadata"].get("labels", {})
    return all((found.get(name) in values) == included for name, included, values in labels)


def _merge(target: dict[str, Any], patch: Any) -> None:
    """Applies a merge patch, or the additions of a JSON patch."""
    if isinstance(patch, list):
        for change in patch:
            *path, last = change["path"].strip("/").replace("~1", "/").split("/")
            place = target
            for name in path:
                place = place.setdefault(name, {})
            place[last] = change.get("value")
        return
    for name, value in patch.items():
        if isinstance(value, dict) and isinstance(target.get(name), dict):
            _merge(target[name], value)
        else:
            target[name] = value


def _status(code: int, reason: str) -> web.Response:
    kind = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": code, "reason": reason}
    return web.json_response(
        {**kind, "status": "Success" if code == 200 else "Failure"}, status=code
    )


def main(port: str, hosts: str) -> None:
    """Serves the API in the current directory."""
    pods = _Pods(Path.cwd(), Path(hosts))
    application = web.Application(middlewares=[pods.authorize])
    application.router.add_post(_PODS, pods.create)
    application.router.add_get(_PODS, pods.list)
    application.router.add_delete(_PODS, pods.delete)
    application.router.add_get(_POD, pods.get)
    application.router.add_patch(_POD, pods.patch)
    application.router.add_delete(_POD, pods.delete)
    application.on_shutdown.append(pods.close)
    web.run_app(application, host="127.0.0.1", port=int(port), print=None)


if __name__ == "__main__":
    main(*sys.argv[1:])

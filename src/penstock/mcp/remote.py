"""Pipelines of a server, with the rights of a token."""

from __future__ import annotations

from penstock.mcp.pipelines import Facts
from penstock.server_client import ServerClient


class RemotePipelines:
    """The pipelines of `penstock serve`."""

    def __init__(self, client: ServerClient) -> None:
        self._client = client

    def all(self) -> list[Facts]:
        """Returns the pipelines with their health, the worst first."""
        found: list[Facts] = self._client.get_facts("pipelines")
        return found

    def read(self, name: str) -> Facts:
        """Returns the text of a pipeline, its file and its version."""
        found = self._client.pipeline(name)
        return {"file": found.file, "version": found.version, "text": found.text}

    def check(self, name: str, text: str | None, *, columns: bool) -> Facts:
        """Returns the result of a check. An unknown name is that of a new pipeline."""
        level = "plan" if columns else "static"
        found = self._client.find(name)
        if found is None and text is not None:
            return self._client.post_facts("check", {"name": name, "text": text, "level": level})
        known = found or self._client.pipeline(name)
        return self._client.post_facts(
            f"pipelines/{known.id}/check", {"text": text, "level": level}
        )

    def explain(self, name: str) -> Facts:
        """Returns the nodes, queries, health and metrics of a pipeline."""
        found: Facts = self._client.get_facts(f"pipelines/{self._client.pipeline(name).id}")
        return {key: value for key, value in found.items() if key != "text"}

    def dead_letters(self, name: str, node: str | None, code: str | None, limit: int) -> Facts:
        """Returns the newest dead letters of a selection."""
        path = f"pipelines/{self._client.pipeline(name).id}/dead-letters"
        found: Facts = self._client.get_facts(path, node=node, code=code, limit=limit)
        return found

    def write(self, name: str, text: str, note: str) -> Facts:
        """Applies a text as a new version, or creates the pipeline. It does not run yet."""
        found = self._client.find(name)
        if found is None:
            body = {"name": name, "text": text, "note": note}
            return self._client.post_facts("pipelines", body)
        path, base = f"pipelines/{found.id}/apply", found.version or 0
        return self._client.post_facts(path, {"text": text, "note": note, "base": base})

    def replay(self, name: str, ids: list[str] | None) -> Facts:
        """Replays dead letters of a stopped pipeline."""
        return self._client.replay(self._client.pipeline(name).id, ids)

    def start(self, name: str) -> Facts:
        """Requests that a pipeline runs."""
        return self._client.post_facts(f"pipelines/{self._client.pipeline(name).id}/start", {})

    def stop(self, name: str) -> Facts:
        """Requests that a pipeline stops after its current batch."""
        return self._client.post_facts(f"pipelines/{self._client.pipeline(name).id}/stop", {})

"""Pipelines of a directory, for tools that run on the machine of the user."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from penstock.catalog import SUFFIXES, pipeline_files
from penstock.core.errors import PenstockError, Transient, UserError
from penstock.core.files.durable import replace_durably
from penstock.core.text import did_you_mean
from penstock.mcp.pipelines import Facts
from penstock.server.workers.pool import WorkerPool

SECONDS = {"static": 30.0, "plan": 120.0}
RUN_SECONDS = 300.0
MAX_OUTPUT = 16 * 1024 * 1024


class LocalPipelines:
    """The pipelines of a directory. A name is the path of a file, or its name without a suffix."""

    def __init__(self, directory: Path, workers: WorkerPool) -> None:
        self._root, self._workers = directory.resolve(), workers

    def all(self) -> list[Facts]:
        """Returns the pipelines, by file."""
        return [
            {"name": path.stem, "file": str(path.relative_to(self._root))}
            for path in pipeline_files(self._root)
        ]

    def read(self, name: str) -> Facts:
        """Returns the text of a pipeline."""
        path = self._path(name)
        return {"file": str(path.relative_to(self._root)), "text": path.read_text("utf-8")}

    def check(self, name: str, text: str | None, *, columns: bool) -> Facts:
        """Returns the result of a check. Another text is checked without Spark.

        Spark would run the functions of the text.
        """
        path = self._path(name) if text is None else self._new_path(name)
        level = "plan" if columns and text is None else "static"
        return self._workers.call("check", path, text=text, timeout=SECONDS[level], level=level)

    def explain(self, name: str) -> Facts:
        """Returns the nodes and queries of a pipeline."""
        return self._workers.call("describe", self._path(name))

    def dead_letters(self, name: str, node: str | None, code: str | None, limit: int) -> Facts:
        """Returns the newest dead letters of a selection."""
        return self._workers.call(
            "list_dead_letters", self._path(name), node=node, code=code, limit=limit
        )

    def write(self, name: str, text: str, note: str) -> Facts:
        """Writes a valid text to the file of a pipeline. `note` has no place in a directory."""
        path = self._new_path(name)
        found = self._workers.call("check", path, text=text, timeout=SECONDS["static"])
        if found["ok"]:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_durably(path, text)
        return {**found, "written": found["ok"], "file": str(path.relative_to(self._root))}

    def replay(self, name: str, ids: list[str] | None) -> Facts:
        """Replays dead letters of a pipeline that does not run."""
        path = self._path(name)
        return self._workers.call("replay_dead_letters", path, timeout=RUN_SECONDS, ids=ids)

    def preview(self, name: str, node: str, rows: int, seconds: float) -> Facts:
        """Returns rows of a node. Reads the sources, and writes to no sink."""
        options = ["--rows", str(rows), "--timeout", str(seconds)]
        return self._command("inspect", str(self._path(name)), node, *options)

    def test(self, name: str, case: str | None) -> Facts:
        """Runs the test cases of a pipeline."""
        chosen = [] if case is None else [f"--case={case}"]
        return self._command("test", str(self._path(name)), *chosen)

    def _command(self, *words: str) -> Facts:
        """Runs a command of Penstock in a process of its own, and returns its JSON."""
        command = [sys.executable, "-m", "penstock", *words, "--json"]
        process = subprocess.Popen(
            command, cwd=self._root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        try:
            output, errors = process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            raise Transient(
                f"penstock {words[0]} took longer than {RUN_SECONDS:.0f} s", code="timeout"
            ) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        try:
            found: Facts = json.loads(output[:MAX_OUTPUT])
        except ValueError:
            raise PenstockError(
                f"penstock {words[0]} failed", code="command-failed",
                detail=errors.decode("utf-8", "replace")[-4000:],
            ) from None  # fmt: skip
        return found

    def _path(self, name: str) -> Path:
        """Returns the file of a pipeline. Raises UserError for an unknown name."""
        known = pipeline_files(self._root)
        paths = [str(path.relative_to(self._root)) for path in known]
        stems = [path.stem for path in known]
        found = [path for path, text in zip(known, paths, strict=True) if name in (text, path.stem)]
        if len(found) == 1:
            return found[0]
        reason = "no pipeline" if not found else f"{len(found)} pipelines"
        raise UserError(
            f'the directory has {reason} "{name}"', code="unknown-pipeline",
            hint="Use the path of the file." if found else did_you_mean(name, [*stems, *paths]),
        )  # fmt: skip

    def _new_path(self, name: str) -> Path:
        """Returns the file of a pipeline, which need not exist, within the directory."""
        with suppress(UserError):
            return self._path(name)
        path = (self._root / name).resolve()
        hidden = any(part.startswith(".") for part in Path(name).parts)
        if hidden or not path.is_relative_to(self._root) or path.suffix not in SUFFIXES:
            raise UserError(
                f'"{name[:80]}" is no path of a pipeline in the directory', code="invalid-name",
                hint="Use a path such as orders.yaml, relative to the directory.",
            )  # fmt: skip
        return path

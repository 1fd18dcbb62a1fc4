"""Functions of the server: Python files whose functions all of its pipelines can call in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.core.errors import StateError, UserError
from penstock.core.files.durable import replace_durably
from penstock.core.python_permission import CODE
from penstock.server.changes import CheckFailed
from penstock.server.settings import Settings
from penstock.server.store.functions import FunctionVersion, StoredFunctions
from penstock.server.workers.pool import WorkerPool

CHECK_SECONDS = 10.0


class Functions:
    """The functions of a server. The store has them; the files of a directory are for runs."""

    def __init__(self, settings: Settings, stored: StoredFunctions, workers: WorkerPool) -> None:
        self._settings, self._stored, self._workers = settings, stored, workers

    def write_files(self) -> None:
        """Writes the last version of each file, and removes other files."""
        latest = {self._file(each.name): each.text for each in self._stored.latest()}
        for file in self._settings.functions.glob("*.py"):
            if file not in latest:
                file.unlink()
        for file, text in latest.items():
            if not file.exists() or file.read_text("utf-8") != text:
                replace_durably(file, text)

    def latest(self) -> list[FunctionVersion]:
        """Returns the last version of each file, by name."""
        return self._stored.latest()

    def versions(self, name: str) -> list[FunctionVersion]:
        """Returns the versions of a file, last first. Raises UserError for an unknown name."""
        return self._stored.versions(name)

    def check(self, name: str, text: str) -> dict[str, Any]:
        """Returns the signatures and the errors of a text, which is not run.

        Raises UserError if the server does not permit Python.
        """
        if not self._settings.python:
            raise UserError(
                "the server does not permit Python functions", code=CODE,
                hint="Ask the operator to start the server without --no-python.",
            )  # fmt: skip
        others = {
            signature.partition("(")[0].lower(): each.name
            for each in self._stored.latest()
            if each.name != name
            for signature in each.signatures
        }
        return self._workers.call(
            "check_functions", self._file(name), text=text, timeout=CHECK_SECONDS, others=others
        )

    def register(self, name: str, text: str, author: str, note: str) -> FunctionVersion:
        """Adds a version of a file. Runs use it from their next start on.

        Raises CheckFailed for an invalid text.
        """
        found = self.check(name, text)
        if found["errors"]:
            raise CheckFailed(found["errors"])
        with self._stored.new_version(name, text, found["signatures"], author, note) as version:
            try:
                replace_durably(self._file(name), text)
            except OSError as error:
                raise StateError(
                    f"the file of functions cannot be written: {error.strerror}",
                    code="file-not-written", hint="Free space on the disk.",
                ) from error  # fmt: skip
        return version

    def remove(self, name: str) -> None:
        """Removes a file with all versions. Pipelines that call it fail their next check."""
        self._stored.versions(name)
        self._stored.remove(name)
        self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self._settings.functions / f"{name}.py"

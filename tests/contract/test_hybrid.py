from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.files import FilesSource
from penstock.connectors.hybrid import HybridSource
from penstock.connectors.memory import MemorySource
from penstock.testing.contract import SourceContract

WATCHED = {"type": "files", "path": "new/*.jsonl", "watch": True, "order": "name"}


class TestHybridSource(SourceContract):
    """A table without rows, and then a directory that is watched."""

    component = HybridSource
    batch_limit = {
        "phases": [
            {"type": "memory", "rows": []},
            {
                "type": "files",
                "path": "new/*.jsonl",
                "watch": True,
                "order": "name",
                "max_files": 1,
            },
        ]
    }

    @pytest.fixture
    def options(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        monkeypatch.chdir(tmp_path)
        return {"phases": [{"type": "memory", "rows": []}, WATCHED]}

    def create_component(self, options: dict[str, Any], state: Path | None = None) -> Any:
        source = super().create_component(options, state)
        phases = []
        for number, phase in enumerate(source.phase_options()):
            given = {name: value for name, value in phase.items() if name != "type"}
            component = {"memory": MemorySource, "files": FilesSource}[phase["type"]]
            config = component.config_type.model_validate(given)
            place = state and state / "phases" / str(number)
            made: Any = component(config, replace(source.context, state=place))
            made.format = source.format if component is FilesSource else None
            phases.append(made)
        source.set_phases(phases)
        source.format = None
        return source

    @pytest.fixture
    def put(self, tmp_path: Path) -> Any:
        (tmp_path / "new").mkdir()
        numbers = count()

        def put(rows: Any, schema: Any) -> None:
            lines = b"".join(each + b"\n" for each in self.encode(rows, schema))
            (tmp_path / "new" / f"{next(numbers):03d}.jsonl").write_bytes(lines)

        return put

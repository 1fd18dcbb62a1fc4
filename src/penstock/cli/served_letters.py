"""Dead letters of a pipeline of a server, for `penstock dead`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from penstock.cli.printing import print_json, print_table
from penstock.core.errors import UserError
from penstock.core.text import plural, shorten
from penstock.runtime.dead_letters.replay_record import ReplayResult, SkippedNode
from penstock.runtime.dead_letters.selection import unknown_start

if TYPE_CHECKING:
    from penstock.server_client import ServerClient

PAGE = 1000
MAX_IDS = 100_000
"""The IDs of a request, at most."""
Count = tuple[str, str, int]
"""A node, a code, and the number of their dead letters."""


@dataclass(frozen=True)
class ServedLetters:
    """A selection of the dead letters of a pipeline: of a node, a code and the start of an ID."""

    client: ServerClient
    name: str
    pipeline: str
    node: str | None = None
    code: str | None = None
    id: str | None = None

    @classmethod
    def of(
        cls, client: ServerClient, words: Sequence[Path], node: str | None = None,
        code: str | None = None, id: str | None = None,
    ) -> ServedLetters:  # fmt: skip
        """Returns the letters of the pipeline of a name. Raises UserError for several names."""
        if len(words) != 1:
            raise UserError(
                "expected the name of one pipeline of the server", code="usage",
                hint="List the pipelines with penstock status --all --server URL.",
            )  # fmt: skip
        found = client.pipeline(str(words[0]))
        return cls(client, found.name, found.id, node, code, id)

    @property
    def ids(self) -> list[str]:
        """The IDs of the selection."""
        return [letter["id"] for letter in self._letters()]

    @property
    def counts(self) -> list[Count]:
        """The numbers of the selection by node and code."""
        found = Counter((letter["node"], letter["code"]) for letter in self._letters())
        return [(node, code, count) for (node, code), count in sorted(found.items())]

    def print(self, limit: int, *, json: bool) -> None:
        """Prints the numbers of the selection, and the newest letters."""
        page = self._page(max(min(limit, PAGE), 1), None)
        letters = page["letters"][: max(limit, 0)]
        if json:
            print_json({**{name: page[name] for name in ("total", "counts")}, "letters": letters})
            return
        counts = [(row["node"], row["code"], row["count"]) for row in page["counts"]]
        rows = [
            (each["id"][:8], each["time"][:19].replace("T", " "), each["node"],
             _position(each), shorten(each["message"]))
            for each in letters
        ]  # fmt: skip
        print_letters(self.name, page["total"], counts, rows)

    def show(self) -> tuple[dict[str, Any], bytes | None]:
        """Returns the letter whose ID starts with `id`, as JSON, and its payload."""
        id = self.id or ""
        if "/" in id:
            raise unknown_start(id)
        path = f"pipelines/{self.pipeline}/dead-letters/{quote(id)}"
        facts: dict[str, Any] = self.client.get_facts(path)
        text, hex_ = facts["payload"], facts["payload_hex"]
        return facts, bytes.fromhex(hex_) if hex_ else None if text is None else text.encode()

    def remove(self, ids: Sequence[str]) -> int:
        """Removes letters permanently, and returns their number."""
        path = f"pipelines/{self.pipeline}/dead-letters/remove"
        parts = [ids[first : first + MAX_IDS] for first in range(0, len(ids), MAX_IDS)]
        return sum(self.client.post_facts(path, {"ids": part})["removed"] for part in parts)

    def replay(self, *, force: bool) -> ReplayResult:
        """Replays the selection. Raises StateError if the pipeline runs."""
        ids = self.ids if self.node or self.code or self.id else None
        found = self.client.replay(self.pipeline, ids, force=force)
        skipped = [SkippedNode(**each) for each in found.pop("skipped")]
        return ReplayResult(**found, skipped=skipped)

    def _letters(self) -> list[dict[str, Any]]:
        letters: list[dict[str, Any]] = []
        before = None
        while True:
            page = self._page(PAGE, before)
            letters += [each for each in page["letters"] if each["id"].startswith(self.id or "")]
            before = page["next"]
            if before is None:
                break
        if self.id and not letters:
            raise unknown_start(self.id)
        return letters

    def _page(self, limit: int, before: str | None) -> dict[str, Any]:
        path = f"pipelines/{self.pipeline}/dead-letters"
        selected = {"node": self.node, "code": self.code, "limit": limit, "before": before}
        found: dict[str, Any] = self.client.get_facts(path, **selected)
        return found


def _position(letter: Mapping[str, Any]) -> str:
    origin = letter["origin"]
    return "" if origin is None else f"{Path(origin).name}:{letter['position']}"


def print_letters(
    name: str, total: int, counts: Sequence[Count], rows: Sequence[tuple[str, ...]]
) -> None:
    """Prints numbers by node and code, and a row for each of the newest letters."""
    print(f"{name}: {plural(total, 'dead letter')}")
    if counts:
        print()
        table = [(node, code, f"{count:,}") for node, code, count in counts]
        print_table(("node", "code", "count"), table)
    if rows:
        print()
        print_table(("id", "time (UTC)", "node", "position", "reason"), rows, wrap=True)

"""A code block of a page: what its info string says, and how it is carried out."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\S+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)\n?", re.MULTILINE)
TIMEOUT = 300


@dataclass(frozen=True)
class Block:
    """A fenced block.

    The first word of its info string is the language. `title=PATH` makes it a file, also `append`
    to the one that is there. A `sh` block must succeed; a `console` block has commands after `$`
    (going on after `>`) and what they print, where `...` stands for anything; `exit=N` is the
    code that its last command ends with. A `python` block is a program. `skip=WHY` is not run.
    """

    page: Path
    line: int
    language: str
    options: dict[str, str]
    text: str

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return f"{self.page}:{self.line}"

    def perform(self, directory: Path, **environment: str) -> None:
        """Does what the page tells its reader to do. Raises AssertionError."""
        environment = {**os.environ, **environment}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        if "skip" in self.options:
            return
        if title := self.options.get("title"):
            path = directory / title
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a" if "append" in self.options else "w") as file:
                file.write(self.text)
        elif self.language == "sh":
            self._run(["sh", "-e", "-c", self.text], directory, environment)
        elif self.language == "python":
            self._run([sys.executable, "-c", self.text], directory, environment)
        elif self.language == "console":
            self._converse(directory, environment)

    def _converse(self, directory: Path, environment: dict[str, str]) -> None:
        commands = list(_COMMAND.finditer(self.text))
        assert commands, f"{self.place}: a console block without a command"
        ends = [match.start() for match in commands[1:]] + [len(self.text)]
        for match, end in zip(commands, ends, strict=True):
            last = end == len(self.text)
            code = int(self.options.get("exit", 0)) if last else 0
            command = match[1].replace("\n> ", "\n")
            printed = self._run(["sh", "-c", command], directory, environment, code)
            expected = self.text[match.end() : end]
            assert alike(expected, printed), (
                f"{self.place}: $ {command}\n--- the page says\n{expected}\n--- it is\n{printed}"
            )

    def _run(
        self, command: list[str], directory: Path, environment: dict[str, str], code: int = 0
    ) -> str:
        done = subprocess.run(
            command, cwd=directory, env=environment, text=True, timeout=TIMEOUT, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == code, (
            f"{self.place}: {command[-1]}\nended with {done.returncode}, not {code}\n{done.stdout}"
        )
        return done.stdout


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text()
    for match in _FENCE.finditer(text):
        words = [word.partition("=") for word in shlex.split(match[2])]
        yield Block(
            page, text.count("\n", 0, match.start()) + 1, match[1],
            {name: value for name, _, value in words}, match[3],
        )  # fmt: skip


def alike(expected: str, actual: str) -> bool:
    """Whether a text is as expected: `...` is any text, and space at the end of lines is none."""
    pattern = re.escape(_trimmed(expected)).replace(r"\.\.\.", ".*")
    return bool(re.fullmatch(pattern, _trimmed(actual), re.DOTALL))


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())

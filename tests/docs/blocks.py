"""The code blocks of a page, and a reader who does what they say."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_FENCE = re.compile(r"^```(\S+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)\n?", re.MULTILINE)
TIMEOUT = 300


@dataclass(frozen=True)
class Block:
    """A fenced block; `options` are the words of its info string after the language."""

    page: Path
    line: int
    language: str
    options: Mapping[str, str]
    text: str

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return f"{self.page}:{self.line}"

    def commands(self) -> Iterator[tuple[str, str, int]]:
        """The commands of a console block, what each prints, and the code that it ends with."""
        found = list(_COMMAND.finditer(self.text))
        assert found, f"{self.place}: a console block without a command"
        ends = [match.start() for match in found[1:]] + [len(self.text)]
        for match, end in zip(found, ends, strict=True):
            code = int(self.options.get("exit", 0)) if match is found[-1] else 0
            yield match[1].replace("\n> ", "\n"), self.text[match.end() : end], code


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text()
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        words = (word.partition("=") for word in shlex.split(match[2]))
        yield Block(page, line, match[1], {name: value for name, _, value in words}, match[3])


@dataclass
class Reader:
    """Carries out blocks in a directory.

    `title=PATH` makes a block a file, with `append` the end of one. A `sh` block must succeed; a
    `console` block has commands after `$` (going on after `>`) and what they print (on standard
    error, if there is nothing else), where `...` stands for anything; `exit=N` is the code of its
    last command. A `python` block is a program. `skip=WHY` is not run. `close` ends what was left
    running in the background.
    """

    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    _groups: list[int] = field(default_factory=list)

    def perform(self, block: Block) -> str:
        """What its commands print. Raises AssertionError where the page is wrong."""
        if "skip" in block.options:
            return ""
        if title := block.options.get("title"):
            path = self.directory / title
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a" if "append" in block.options else "w") as file:
                file.write(block.text)
        elif block.language == "sh":
            return self._run(block, ["sh", "-e", "-c", block.text])
        elif block.language == "python":
            return self._run(block, [sys.executable, "-c", block.text])
        elif block.language == "console":
            return "".join(self._compare(block, *each) for each in block.commands())
        return ""

    def close(self) -> None:
        """Kills what still runs."""
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._groups.clear()

    def _compare(self, block: Block, command: str, expected: str, code: int) -> str:
        printed = self._run(block, ["sh", "-c", command], code)
        assert alike(expected, printed), (
            f"{block.place}: $ {command}\n--- the page says\n{expected}\n--- it is\n{printed}"
        )
        return printed

    def _run(self, block: Block, command: list[str], code: int = 0) -> str:
        process = subprocess.Popen(
            command, cwd=self.directory, env=self._environment(), text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._groups.append(process.pid)
        with process:
            try:
                printed, told = process.communicate(timeout=TIMEOUT)
            except subprocess.TimeoutExpired:
                self.close()
                raise
        assert process.returncode == code, (
            f"{block.place}: {command[-1]}\nended with {process.returncode}, not {code}\n"
            f"{printed}\n{told}"
        )
        return printed or told

    def _environment(self) -> dict[str, str]:
        everything = {**os.environ, "COLUMNS": "100", **self.environment}
        path = f"{Path(sys.executable).parent}{os.pathsep}{everything['PATH']}"
        return {**everything, "PATH": path}


def alike(expected: str, actual: str) -> bool:
    """Whether a text is as expected, apart from spaces at the ends of lines.

    `...` is any text in a line, and a line with nothing else is any number of lines.
    """
    pattern = "".join(
        r"(?:\n.*)*" if line == "..." else r"\n" + re.escape(line).replace(r"\.\.\.", ".*")
        for line in _lines(expected)
    )
    return bool(re.fullmatch(pattern, "".join(f"\n{line}" for line in _lines(actual))))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]

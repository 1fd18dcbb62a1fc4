"""The code blocks of a page, and a reader who does what they say."""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import (
    AbstractContextManager,
    chdir,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from in_this_process import RunInThread, run_pytest, run_python
from penstock_program import PenstockProgram

from command_line import CommandLine
from penstock.cli.shell.shell import Shell
from penstock.cli.sql import respond

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FENCE = re.compile(r"^```(\S+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)\n?", re.MULTILINE)
_PENSTOCK = re.compile(r"((?:[A-Z_]+=\S+ )*)(?:penstock|\./dev) ([^\n|&;<>$`*()]+)\n?")
_PYTEST = re.compile(r"python -m pytest ([^\n|&;<>$`*()]+)\n?")
_PYTHON = re.compile(r'python -c "([^"$`\\]*)"\n?')
_BACKGROUND = re.compile(r"&\s*$", re.MULTILINE)
_RUN_BESIDE = re.compile(r"penstock (run [^\n|&;<>`()]+)> ?(\S+) 2>&1 &(?:\n|$)")
_MORE = "       -> "
TIMEOUT = 300
DOCS = Path(__file__).parents[2] / "docs"
CONNECTOR_PAGE = DOCS / "howto" / "connector.md"
"""The page whose blocks need the component that the page writes."""
PAGES = sorted({*DOCS.glob("*.md"), *DOCS.glob("howto/*.md")} - {CONNECTOR_PAGE})
"""The other pages that are written by hand."""


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

    def statements(self) -> Iterator[tuple[str, str]]:
        """The statements of a block of the shell, and what each prints."""
        for part in self.text.split("penstock> ")[1:]:
            lines = part.splitlines()
            count = 1 + sum(1 for _ in takewhile(lambda line: line.startswith(_MORE), lines[1:]))
            statement = [lines[0], *(line.removeprefix(_MORE) for line in lines[1:count])]
            yield "\n".join(statement), "\n".join(lines[count:])


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
    last command. A `text shell` block has statements after the prompt of `penstock sql`, each with
    its output; all blocks of a page are in one shell. A `python` block is a program. `skip=WHY` is
    not run. `close` ends what was left running in the background.

    These run in this process, by `cli`: `penstock WORD ...` (in the background only a run whose
    output goes to a file), programs of Python, and `python -m pytest ...`. A shell runs all other
    commands.
    """

    directory: Path
    cli: CommandLine
    environment: Mapping[str, str] = field(default_factory=dict)
    _groups: list[int] = field(default_factory=list)
    _runs: list[RunInThread] = field(default_factory=list)
    _shell_of_page: Shell | None = None

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
            return self._shell(block, block.text)
        elif block.language == "python":
            return run_python(block.text, block.place, self.directory, self.cli)
        elif "shell" in block.options:
            return "".join(self._respond(block, *each) for each in block.statements())
        elif block.language == "console":
            return "".join(self._compare(block, *each) for each in block.commands())
        return ""

    def _respond(self, block: Block, statement: str, expected: str) -> str:
        assert self.cli.spark is not None
        if self._shell_of_page is None:
            spark: Future[SparkSession] = Future()
            spark.set_result(self.cli.spark)
            self._shell_of_page = Shell(spark, self.directory / ".shell")
        output = io.StringIO()
        with chdir(self.directory), redirect_stdout(output), redirect_stderr(output):
            respond(self._shell_of_page, statement)
        printed = output.getvalue()
        assert alike(expected, printed), (
            f"{block.place}: {statement}\n--- the page says\n{expected}\n--- it is\n{printed}"
        )
        return printed

    def close(self) -> None:
        """Ends what still runs."""
        for run in reversed(self._runs):
            run.close()
        self._runs.clear()
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._groups.clear()

    def _compare(self, block: Block, command: str, expected: str, code: int) -> str:
        printed = self._shell(block, command, code)
        assert alike(expected, printed), (
            f"{block.place}: $ {command}\n--- the page says\n{expected}\n--- it is\n{printed}"
        )
        return printed

    def _shell(self, block: Block, command: str, code: int = 0) -> str:
        command = self._start_run(block, command)
        if not command:
            return ""
        words, tests = _PENSTOCK.fullmatch(command), _PYTEST.fullmatch(command)
        if tests is not None:
            done = run_pytest(shlex.split(tests[1]), self.directory, self.cli)
            self._judge(block, command, done, code)
            return done.stdout
        program = _PYTHON.fullmatch(command)
        if program is not None:
            return run_python(program[1], block.place, self.directory, self.cli)
        if words is None:
            return self._run(block, ["sh", "-e", "-c", command], code)
        variables = dict(each.split("=", 1) for each in words[1].split())
        done = self.cli(
            self.directory, *shlex.split(words[2]),
            environment={"COLUMNS": "100", **self.environment, **variables},
        )  # fmt: skip
        self._judge(block, command, done, code)
        return done.stdout or done.stderr

    def _start_run(self, block: Block, command: str) -> str:
        """Starts a run in the background. Returns the rest of the command."""
        beside = _RUN_BESIDE.match(command)
        if beside is None:
            return command
        words = shlex.split(Template(beside[1]).substitute(self.environment))
        output = self.directory / beside[2]
        self._runs.append(RunInThread(words, output, self.directory, self.environment, self.cli))
        return command[beside.end() :]

    def _run(self, block: Block, command: list[str], code: int = 0) -> str:
        with self._penstock(command[-1]) as penstock:
            process = subprocess.Popen(
                command, cwd=self.directory, env=self._environment(penstock), text=True,
                start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )  # fmt: skip
            self._groups.append(process.pid)
            with process, ThreadPoolExecutor(1) as pool:
                reading = pool.submit(process.communicate, timeout=TIMEOUT)
                if penstock:
                    penstock.serve(reading.done)
                try:
                    printed, errors = reading.result()
                except subprocess.TimeoutExpired:
                    self.close()
                    raise
        done = subprocess.CompletedProcess(command, process.returncode, printed, errors)
        self._judge(block, command[-1], done, code)
        return printed or errors

    def _penstock(self, command: str) -> AbstractContextManager[PenstockProgram | None]:
        """Returns the `penstock` of a command; None for that of this environment.

        A command in the background runs beside the next ones, so it is a process of its own.
        """
        if _BACKGROUND.search(command):
            return nullcontext()
        return PenstockProgram(self.cli)

    def _judge(
        self, block: Block, command: str, done: subprocess.CompletedProcess[str], code: int
    ) -> None:
        assert done.returncode == code, (
            f"{block.place}: {command}\nended with {done.returncode}, not {code}\n"
            f"{done.stdout}\n{done.stderr}"
        )

    def _environment(self, penstock: PenstockProgram | None) -> dict[str, str]:
        everything = {**os.environ, "COLUMNS": "100", **self.environment}
        directories = [str(penstock.directory)] if penstock else []
        directories += [str(Path(sys.executable).parent), everything["PATH"]]
        return {**everything, "PATH": os.pathsep.join(directories)}


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

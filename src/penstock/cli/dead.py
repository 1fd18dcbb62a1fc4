"""`penstock dead`: dead letters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Group, Parameter

from penstock.cli.options import Files, Json, Overrides
from penstock.cli.printing import print_json, print_table
from penstock.cli.served_letters import ServedLetters, print_letters
from penstock.cli.server_options import Data, Server, connect, uses_server
from penstock.core.errors import UserError
from penstock.core.text import plural, printable, shorten
from penstock.core.units import size_text

if TYPE_CHECKING:
    from penstock.control import PipelineControl
    from penstock.runtime.dead_letters.dead_letter import DeadLetter
    from penstock.runtime.dead_letters.replay_record import ReplayResult

dead = App(
    name="dead",
    help_format="plaintext",
    group_commands=Group("Commands"),
    default_parameter=Parameter(negative=(), show_default=False),
    help="""List, show, replay or remove dead letters: records that failed.

The state directory of a pipeline keeps dead letters until they are replayed, removed or older
than runtime.dead_letters.retention.

  penstock dead list late-flights.yaml
  penstock dead show late-flights.yaml 3f9a
  penstock dead replay late-flights.yaml --node flights""",
)

Node = Annotated[str | None, Parameter(metavar="NAME", help="Only of this node.")]
Code = Annotated[str | None, Parameter(metavar="CODE", help="Only with this error code.")]
Id = Annotated[
    str | None, Parameter(metavar="ID", help="Only the dead letter whose id starts with ID.")
]


@dead.command(name="list")
def list_(
    files: Files,
    /,
    *,
    overrides: Overrides = (),
    node: Node = None,
    code: Code = None,
    limit: Annotated[
        int, Parameter(metavar="N", help="Number of dead letters to show; 10 by default.")
    ] = 10,
    json: Json = False,
    server: Server = None,
    data: Data = None,
) -> None:
    """Count dead letters and show the newest. The pipeline may be running.

    With --server, FILE is the name of a pipeline of a server.

      penstock dead list late-flights.yaml
      penstock dead list late-flights.yaml --node flights --limit 50 --json
      penstock dead list shop --server http://localhost:7077
    """
    if uses_server(server, files):
        letters = ServedLetters.of(connect(server, data), files, node, code)
        letters.print(limit, json=json)
        return
    from penstock.runtime.dead_letters.selection import Selection

    control = _control(files, overrides)
    dead_letters = control.dead_letters(Selection(node, code))
    by_code, latest = dead_letters.counts(), dead_letters.newest(max(limit, 0))
    if json:
        facts = [letter.to_json() for letter in latest]
        print_json({"total": len(dead_letters), "counts": by_code, "letters": facts})
        return
    rows = [(letter.id[:8], f"{letter.time:%Y-%m-%d %H:%M:%S}", letter.node,
             _position(letter), shorten(letter.message)) for letter in latest]  # fmt: skip
    counts = [(row.node, row.code, row.count) for row in by_code]
    print_letters(control.plan.name, len(dead_letters), counts, rows)
    if rows:
        print("\nShow a dead letter with its payload: penstock dead show FILE ID")


@dead.command
def show(
    files_and_id: Annotated[
        tuple[str, ...],
        Parameter(name="FILE... ID", help="The files of the pipeline, and the start of an id."),
    ] = (),
    /,
    *,
    overrides: Overrides = (),
    payload: Annotated[bool, Parameter(help="Print the bytes of the payload only.")] = False,
    json: Json = False,
    server: Server = None,
    data: Data = None,
) -> None:
    """Show a dead letter: payload, origin and error.

    With --server, FILE is the name of a pipeline of a server.

      penstock dead show late-flights.yaml 3f9a
      penstock dead show late-flights.yaml 3f9a --payload > record.bin
      penstock dead show shop 3f9a --server http://localhost:7077
    """
    *files, identity = map(str, files_and_id or ("",))
    if not files or not identity:
        raise UserError(
            "expected the file of the pipeline and an id", code="usage",
            hint="List the ids with penstock dead list FILE.",
        )  # fmt: skip
    words = [Path(file) for file in files]
    if uses_server(server, words):
        served = ServedLetters.of(connect(server, data), words, id=identity)
        facts, content = served.show()
    else:
        letter = _control(words, overrides).dead_letter(identity)
        facts, content = letter.to_json(), letter.payload
    if payload:
        sys.stdout.buffer.write(content or b"")
    elif json:
        print_json(facts)
    else:
        _print(facts, content)


@dead.command
def replay(
    files: Files,
    /,
    *,
    overrides: Overrides = (),
    node: Node = None,
    code: Code = None,
    id: Id = None,
    force: Annotated[
        bool, Parameter(help="Also replay through stateful nodes, such as windows.")
    ] = False,
    dry_run: Annotated[bool, Parameter(help="Show the selection and replay nothing.")] = False,
    json: Json = False,
    server: Server = None,
    data: Data = None,
) -> int:
    """Replay dead letters from the node that failed, after the cause is fixed.

    Removes dead letters that succeed and keeps the others. With --server, FILE is the name of a
    stopped pipeline of a server.

      penstock dead replay late-flights.yaml
      penstock dead replay late-flights.yaml --node flights --dry-run
      penstock dead replay shop --server http://localhost:7077
    """
    if uses_server(server, files):
        letters = ServedLetters.of(connect(server, data), files, node, code, id)
        if dry_run:
            _print_selected(letters.name, len(letters.ids), letters.counts)
            return 0
        return _report(letters.replay(force=force), json=json)
    from penstock.runtime.dead_letters.selection import Selection

    selection, control = Selection(node, code, id), _control(files, overrides)
    dead_letters = control.dead_letters(selection)
    if dry_run:
        counts = [(row.node, row.code, row.count) for row in dead_letters.counts()]
        _print_selected(control.plan.name, len(dead_letters), counts)
        return 0
    return _report(control.replay(dead_letters.ids if selection else None, force=force), json=json)


def _print_selected(name: str, total: int, counts: Sequence[tuple[str, str, int]]) -> None:
    print(f"{name}: {plural(total, 'dead letter')} would be replayed")
    print_table(("", "", ""), [(node, code, f"{count:,}") for node, code, count in counts])


def _report(result: ReplayResult, *, json: bool) -> int:
    """Prints the result of a replay. Returns the exit code."""
    if json:
        print_json(result)
    else:
        _print_replayed(result)
    return 1 if result.failed or result.skipped else 0


@dead.command
def remove(
    files: Files,
    /,
    *,
    overrides: Overrides = (),
    node: Node = None,
    code: Code = None,
    id: Id = None,
    yes: Annotated[bool, Parameter(help="Remove without confirmation.")] = False,
    server: Server = None,
    data: Data = None,
) -> int:
    """Remove dead letters permanently. With --server, FILE is the name of a pipeline of a server.

    penstock dead remove late-flights.yaml --code undecodable
    penstock dead remove late-flights.yaml --yes
    penstock dead remove shop --code undecodable --server http://localhost:7077
    """
    if uses_server(server, files):
        letters = ServedLetters.of(connect(server, data), files, node, code, id)
        return _remove(letters.name, letters.ids, letters.remove, yes=yes)
    from penstock.runtime.dead_letters.selection import Selection

    control = _control(files, overrides)
    dead_letters = control.dead_letters(Selection(node, code, id))
    return _remove(control.plan.name, dead_letters.ids, control.remove_dead_letters, yes=yes)


def _remove(
    name: str, selected: Collection[str], remove: Callable[[list[str]], int], *, yes: bool
) -> int:
    """Removes the selected letters after a confirmation. Returns the exit code."""
    count = plural(len(selected), "dead letter")
    if selected and not yes and not _confirmed(f"Remove {count} permanently?"):
        print("removed nothing")
        return 1
    removed = remove([*selected])
    print(f"{name}: removed {plural(removed, 'dead letter')}")
    return 0


def _control(files: list[Path], overrides: tuple[str, ...]) -> PipelineControl:
    from penstock import app
    from penstock.control import PipelineControl

    plan = app.plan(files, overrides=overrides)
    if plan.dead_letter is not None:
        print(
            f"{plan.name} writes dead letters to its dead_letter sink "
            f"(type: {plan.dead_letter.type}); this list contains only older dead letters",
            file=sys.stderr,
        )
    return PipelineControl.of(plan)


def _confirmed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UserError(question, code="unanswered", hint="Add --yes to confirm.")
    return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}


def _position(letter: DeadLetter) -> str:
    return "" if letter.origin is None else f"{Path(letter.origin).name}:{letter.position}"


def _print(letter: Mapping[str, Any], payload: bytes | None) -> None:
    text = letter["payload"]
    facts = {key: v for key, v in letter.items() if key not in ("payload", "payload_hex")}
    print_table(("", ""), [(key, str(v)) for key, v in facts.items() if v is not None], wrap=True)
    if payload is None:
        print("\nthe record has no payload")
        return
    kind = "payload" if text is not None else "payload in hex"
    content = payload.hex(" ") if text is None else printable(text)
    print(f"\n{kind} ({size_text(len(payload))})\n{content}")


def _print_replayed(result: ReplayResult) -> None:
    if result.finished:
        print(f"{plural(result.finished, 'dead letter')} of an interrupted replay finished")
    print(f"{plural(result.replayed, 'dead letter')} replayed")
    if result.failed:
        kept = "was" if result.failed == 1 else "were"
        print(f"{result.failed:,} failed again and {kept} kept")
    for node in result.skipped:
        print(printable(f"{node.count:,} of {node.node} not replayed: {node.reason}"))

"""`penstock dead`: the records that failed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Group, Parameter

from penstock.cli.options import Files, Json, Sets
from penstock.cli.printing import print_json, print_table
from penstock.core.errors import UserError
from penstock.core.text import plural, shorten
from penstock.core.units import size_text

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.model import Plan
    from penstock.runtime.dead_letters import DeadLetters
    from penstock.runtime.replay import Replayed
    from penstock.runtime.selection import Selection

dead = App(
    name="dead",
    help_format="plaintext",
    group_commands=Group("Verbs"),
    default_parameter=Parameter(negative=(), show_default=False),
    help="""Look at records that failed, and replay or remove them.

They are kept in the pipeline's state directory, with the reason, until they are replayed,
removed, or older than runtime.dead_letters.retention.

  penstock dead list late-flights.yaml
  penstock dead show late-flights.yaml 3f9a
  penstock dead replay late-flights.yaml --node flights""",
)

Node = Annotated[str | None, Parameter(metavar="NAME", help="Only those of this node.")]
Code = Annotated[str | None, Parameter(metavar="CODE", help="Only those with this error code.")]
Id = Annotated[str | None, Parameter(metavar="ID", help="Only the one whose id begins like this.")]


@dead.command(name="list")
def list_(
    files: Files,
    /,
    *,
    set: Sets = (),
    node: Node = None,
    code: Code = None,
    limit: Annotated[
        int, Parameter(metavar="N", help="How many of the newest are shown; 10 by default.")
    ] = 10,
    json: Json = False,
) -> None:
    """Count the records that failed, and show the newest. Works while the pipeline runs.

    penstock dead list late-flights.yaml
    penstock dead list late-flights.yaml --node flights --limit 50 --json
    """
    from penstock.runtime.selection import Selection, counts, newest

    plan, _, letters = _chosen(files, set, Selection(node, code))
    found, shown = counts(letters), newest(letters, max(limit, 0))
    if json:
        facts = [_facts(each) for each in shown]
        print_json({"total": letters.num_rows, "counts": found, "letters": facts})
        return
    print(f"{plan.name}: {plural(letters.num_rows, 'dead letter')}")
    if not found:
        return
    print()
    print_table(
        ("node", "code", "count"), [(each.node, each.code, f"{each.count:,}") for each in found]
    )
    if shown:
        print()
        rows = [(e["id"][:8], f"{e['time']:%Y-%m-%d %H:%M:%S}", e["node"], _place(e),
                 shorten(e["message"])) for e in shown]  # fmt: skip
        print_table(("id", "time (UTC)", "node", "position", "reason"), rows, wrap=True)
        print("\npenstock dead show FILE ID shows one of them with its payload.")


@dead.command
def show(
    files_and_id: Annotated[
        tuple[str, ...],
        Parameter(name="FILE... ID", help="The pipeline's files, and how an id begins."),
    ] = (),
    /,
    *,
    set: Sets = (),
    payload: Annotated[bool, Parameter(help="Print the payload alone, byte by byte.")] = False,
    json: Json = False,
) -> None:
    """Show one record that failed: its payload, where it was read, and why it failed.

    penstock dead show late-flights.yaml 3f9a
    penstock dead show late-flights.yaml 3f9a --payload > record.bin
    """
    from penstock.runtime.selection import Selection

    *files, identity = map(str, files_and_id or ("",))
    if not files:
        raise UserError(
            "expected the pipeline's file and an id", code="usage",
            hint="penstock dead list FILE shows the ids",
        )  # fmt: skip
    _, _, letters = _chosen([Path(each) for each in files], set, Selection(id=identity))
    found = letters.to_pylist()
    if len(found) > 1:
        ids = ", ".join(each["id"] for each in found[:5])
        raise UserError(
            f'{len(found)} dead letters have an id that begins with "{identity}"',
            code="ambiguous-id", hint=f"give more of it: {ids}",
        )  # fmt: skip
    (letter,) = found
    if payload:
        sys.stdout.buffer.write(letter["payload"] or b"")
    elif json:
        print_json(_facts(letter))
    else:
        _print(letter)


@dead.command
def replay(
    files: Files,
    /,
    *,
    set: Sets = (),
    node: Node = None,
    code: Code = None,
    id: Id = None,
    force: Annotated[
        bool, Parameter(help="Also through nodes that remember rows, such as windows.")
    ] = False,
    dry_run: Annotated[bool, Parameter(help="Only say which ones it would be.")] = False,
    json: Json = False,
) -> int:
    """Send records that failed once more from where they failed, when the cause is mended.

    Those that succeed are gone from here; the others stay.

      penstock dead replay late-flights.yaml
      penstock dead replay late-flights.yaml --node flights --dry-run
    """
    from penstock import app
    from penstock.runtime.replay import Replayed
    from penstock.runtime.selection import Selection, counts

    selection = Selection(node, code, id)
    plan, _, letters = _chosen(files, set, selection)
    if dry_run:
        print(f"{plan.name}: {plural(letters.num_rows, 'dead letter')} would be replayed")
        print_table(("", "", ""), [(c.node, c.code, f"{c.count:,}") for c in counts(letters)])
        return 0
    ids = frozenset(letters.column("id").to_pylist()) if selection else None
    result = app.replay(plan, ids=ids, force=force) if letters.num_rows else Replayed()
    if json:
        print_json(result)
    else:
        _print_replayed(result)
    return 1 if result.failed or result.refused else 0


@dead.command
def remove(
    files: Files,
    /,
    *,
    set: Sets = (),
    node: Node = None,
    code: Code = None,
    id: Id = None,
    yes: Annotated[bool, Parameter(help="Do not ask.")] = False,
) -> int:
    """Remove records that failed, for good.

    penstock dead remove late-flights.yaml --code undecodable
    penstock dead remove late-flights.yaml --yes
    """
    from penstock.runtime.selection import Selection

    plan, store, letters = _chosen(files, set, Selection(node, code, id))
    count = plural(letters.num_rows, "dead letter")
    if letters.num_rows and not yes and not _agreed(f"Remove {count} of {plan.name} for good?"):
        print("nothing was removed")
        return 1
    store.remove({*letters.column("id").to_pylist()})
    print(f"{plan.name}: removed {count}")
    return 0


def _chosen(
    files: Any, sets: tuple[str, ...], selection: Selection
) -> tuple[Plan, DeadLetters, pa.Table]:
    from penstock import app
    from penstock.runtime.dead_letters import DeadLetters
    from penstock.runtime.state import StateDirectory

    plan = app.plan(files, sets=sets)
    if plan.dead_letter is not None:
        print(
            f"dead letters of {plan.name} go to its dead_letter sink "
            f"(type: {plan.dead_letter.type}); here are only those from before",
            file=sys.stderr,
        )
    store = DeadLetters(StateDirectory(plan.state).dead_letters)
    return plan, store, selection.of(store.read(), plan.nodes)


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UserError(question, code="unanswered", hint="--yes answers it")
    return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}


def _place(letter: dict[str, Any]) -> str:
    if letter["origin"] is None:
        return ""
    return f"{Path(letter['origin']).name}:{letter['position']}"


def _text(payload: bytes | None) -> str | None:
    try:
        return payload.decode() if payload is not None else None
    except UnicodeDecodeError:
        return None


def _facts(letter: dict[str, Any]) -> dict[str, Any]:
    """A letter for programs: its payload as text, or as hex where it is none."""
    payload = letter["payload"]
    text = _text(payload)
    hex_ = payload.hex() if payload is not None and text is None else None
    return {**letter, "payload": text, "payload_hex": hex_}


def _print(letter: dict[str, Any]) -> None:
    payload = letter["payload"]
    rows = [(k, str(v)) for k, v in letter.items() if k != "payload" and v is not None]
    print_table(("", ""), rows, wrap=True)
    if payload is None:
        print("\nthe record has no payload")
        return
    text = _text(payload)
    kind = "payload" if text is not None else "payload in hex"
    print(f"\n{kind} ({size_text(len(payload))})\n{payload.hex(' ') if text is None else text}")


def _print_replayed(result: Replayed) -> None:
    print(f"{plural(result.sent, 'dead letter')} replayed")
    if result.failed:
        print(f"{result.failed:,} failed again and stay")
    for refusal in result.refused:
        print(f"{refusal.count:,} of {refusal.node} not replayed: {refusal.why}")

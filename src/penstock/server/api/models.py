"""Bodies of requests. Unknown keys are errors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_TEXT = 512 * 1024
Text = Annotated[str, Field(max_length=MAX_TEXT)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
NodeName = Annotated[str, Field(min_length=1, max_length=300)]
Note = Annotated[str, Field(max_length=500)]
Password = Annotated[str, Field(max_length=1000)]
Number = Annotated[int, Field(ge=0, le=2**31 - 1)]
Level = Literal["static", "plan", "connect", "sample"]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NewPipeline(Body):
    """A pipeline to create. `text` is YAML, SQL, or a file of another system."""

    name: Name
    text: Text
    note: Note = ""


class NewText(Body):
    """A text of a pipeline that does not exist yet, of any language."""

    name: Name
    text: Text


class Draft(Body):
    """A text to check. Without a text the file of the pipeline is checked."""

    text: Text | None = None
    level: Level = "static"


class NewDraft(Body):
    """A text of a pipeline that does not exist yet, to check."""

    name: Name
    text: Text
    level: Level = "static"


class Place(Body):
    """A position in a text: line and character, from 1."""

    text: Text
    line: Annotated[int, Field(ge=1, le=MAX_TEXT)]
    column: Annotated[int, Field(ge=1, le=MAX_TEXT)]


class NewPlace(Place):
    """A position in a text of a pipeline that does not exist yet."""

    name: Name


class Preview(Body):
    """Limits of a preview: rows of each node, and seconds."""

    nodes: Annotated[list[NodeName], Field(min_length=1, max_length=20)]
    rows: Annotated[int, Field(ge=1, le=10_000)] = 100
    seconds: Annotated[float, Field(gt=0, le=60)] = 30


class DraftPreview(Preview):
    """A preview of a text. Without a text it is one of the file of the pipeline."""

    text: Text | None = None


class NewDraftPreview(Preview):
    """A preview of a text of a pipeline that does not exist yet."""

    name: Name
    text: Text


class DraftTest(Body):
    """A text to test. `cases` are the names of cases, or parts of them; none is all."""

    text: Text | None = None
    cases: Annotated[list[Annotated[str, Field(max_length=500)]], Field(max_length=1000)] = []


class NewDraftTest(DraftTest):
    """A text of a pipeline that does not exist yet, to test."""

    name: Name
    text: Text


class Trial(Body):
    """A text to run on one dead letter. Without a text the file of the pipeline is run."""

    text: Text | None = None


class Application(Body):
    """A text to apply. `fresh` resets the state: offsets, open windows and dead letters.

    `base` is the version that the text was made from; another one is an error. 0 is none.
    """

    text: Text
    note: Note = ""
    fresh: bool = False
    base: Number | None = None


class Fresh(Body):
    """`fresh` resets the state before the start."""

    fresh: bool = False


class RollBack(Fresh):
    """`fresh` and `base` as of an `Application`."""

    base: Number | None = None


class Letters(Body):
    """Dead letters by ID; None is all of them."""

    ids: Annotated[list[str], Field(max_length=100_000)] | None = None
    force: bool = False


class LetterIds(Body):
    ids: Annotated[list[str], Field(min_length=1, max_length=100_000)]


class Login(Body):
    name: Name
    password: Password


class Code(Body):
    """The code of the address that the server prints at its first start."""

    code: Annotated[str, Field(max_length=200)]


class NewUser(Body):
    name: Name
    rights: list[str]
    password: Password | None = None


class ChangedUser(Body):
    rights: list[str] | None = None
    password: Password | None = None


class OwnPassword(Body):
    password: Password


class NewToken(Body):
    """A token for a program. `rights` limit those of the user; `days` is its lifetime."""

    name: Name
    rights: list[str] | None = None
    days: Annotated[int, Field(ge=1, le=3650)] | None = None

"""What sources, transforms, sinks and formats have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin

from penstock.core.errors import MissingExtra
from penstock.sdk.capability import Capability
from penstock.sdk.config import Config

C = TypeVar("C", bound=Config)
Level = Literal["exactly once", "at least once", "at most once"]


@dataclass(frozen=True)
class Context:
    """Where a component stands: the pipeline and node it serves, and its own part of the state.

    `state` is a directory that survives restarts and is None where nothing is kept (a check,
    a plain PySpark batch read). `base` is the directory that relative paths start from. `topic`
    is for formats: the one topic that the node's payloads are in, if there is one.
    """

    pipeline: str = "penstock"
    node: str = "node"
    state: Path | None = None
    base: Path = field(default_factory=Path.cwd)
    topic: str | None = None


class Component(Generic[C]):
    """Base of everything that a `type:` can name.

    A subclass names its options by its type argument (`class Mine(Sink[MyConfig])`), says in
    its docstring what it is for and what may surprise, and shows an example in a fenced yaml
    block, which a test validates. What it promises is in the attributes.
    """

    capabilities: frozenset[Capability] = frozenset()
    """What the class can do; a component whose options add to it says so when it is made."""
    by_option: ClassVar[Mapping[Capability, str]] = {}
    """What options add to the capabilities, each with the option as the user writes it."""
    parallelism: str = ""
    """The unit of parallelism: what one task reads or writes, or what there is only one of."""
    acknowledges: str | None = ""
    """When the outside is told that a message is safe, or has told so; None: never."""
    variants: ClassVar[tuple[str, ...]] = ()
    """Where options change these three: the options that do, as the user writes them."""
    extra: ClassVar[str | None] = None
    """The extra of the package that brings the client libraries."""
    clients: ClassVar[tuple[str, ...]] = ()
    """The modules of these libraries, which are imported where they are used."""
    config_type: ClassVar[type[Config]] = Config

    def __init__(self, config: C, context: Context | None = None) -> None:
        self.config = config
        self.context = context or Context()

    @classmethod
    def of(cls, config: C, context: Context | None = None) -> Component[C]:
        """The component for these options; what `type:` names is made by this.

        It is of this class, or, where the options choose between several, of another.
        """
        return cls(config, context)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__dict__.get("__orig_bases__", ()):
            for argument in get_args(base) if get_origin(base) else ():
                if isinstance(argument, type) and issubclass(argument, Config):
                    cls.config_type = argument

    def topic(self) -> str | None:
        """The one topic that all payloads are in, by which a registry knows their schema."""
        return None

    def examine(self) -> None:
        """Tells mistakes that the options' types cannot tell: no network, nothing carried out.

        Raises UserError, or Mistakes of several; OptionError points to an option. Without more it
        raises MissingExtra if one of `clients` cannot be imported.
        """
        for module in self.clients:
            if find_spec(module) is None:
                raise MissingExtra.of(self.extra or "", module)

    def check(self) -> None:
        """Reaches the outside system once and consumes nothing.

        Raises Transient or Permanent with a hint. Returns at once where there is nothing outside.
        """

    def close(self) -> None:
        """Lets go of what the component holds. Called once, also after a failure."""

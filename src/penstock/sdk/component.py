"""What sources, transforms, sinks and formats have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin

from penstock.sdk.capability import Capability
from penstock.sdk.config import Config

C = TypeVar("C", bound=Config)


@dataclass(frozen=True)
class Context:
    """Where a component stands: the pipeline and node it serves, and its own part of the state.

    `state` is a directory that survives restarts and is None where nothing is kept (a check,
    a plain PySpark batch read). `base` is the directory that relative paths start from.
    """

    pipeline: str = "penstock"
    node: str = "node"
    state: Path | None = None
    base: Path = field(default_factory=Path.cwd)


class Component(Generic[C]):
    """Base of everything that a `type:` can name.

    A subclass names its options by its type argument (`class Mine(Sink[MyConfig])`), says in
    its docstring what it is for, its unit of parallelism and its guarantee, and shows an example
    in a fenced yaml block, which a test validates.
    """

    capabilities: frozenset[Capability] = frozenset()
    """What the class can do; a component whose options add to it says so when it is made."""
    by_option: ClassVar[Mapping[Capability, str]] = {}
    """What options add to the capabilities, each with the option as the user writes it."""
    extra: ClassVar[str | None] = None
    config_type: ClassVar[type[Config]] = Config

    def __init__(self, config: C, context: Context | None = None) -> None:
        self.config = config
        self.context = context or Context()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__dict__.get("__orig_bases__", ()):
            for argument in get_args(base) if get_origin(base) else ():
                if isinstance(argument, type) and issubclass(argument, Config):
                    cls.config_type = argument

    def examine(self) -> None:
        """Tells mistakes that the options' types cannot tell: no network, nothing carried out.

        Raises UserError, or Mistakes of several; OptionError points to an option.
        """

    def check(self) -> None:
        """Reaches the outside system once and consumes nothing.

        Raises Transient or Permanent with a hint. Returns at once where there is nothing outside.
        """

    def close(self) -> None:
        """Lets go of what the component holds. Called once, also after a failure."""

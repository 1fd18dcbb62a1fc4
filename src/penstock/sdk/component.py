"""The base class of sources, transforms, sinks and formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin

from penstock.core.errors import MissingExtra
from penstock.sdk.capability import Capability
from penstock.sdk.config import Config
from penstock.sql.user_functions import NO_FUNCTIONS, UserFunctions

C = TypeVar("C", bound=Config)
Level = Literal["exactly once", "at least once", "at most once"]
SDK_VERSION = 1
"""The version of the SDK. A change that breaks components of other packages increases it."""


@dataclass(frozen=True)
class Context:
    """The context of a component: its pipeline, its node and its state directory.

    `node` is unique in the pipeline; that of a sink with the name of a source or a transform is
    `sinks.NAME`. `state` is a directory that survives restarts; None without state (a check, a
    PySpark batch read). `base` is the base directory of relative paths. `project` is the directory
    of the pipeline file, to which paths in `state` are relative. `topic` is for formats: the topic
    of the node's payloads, if there is a single one. `owner` is for sinks: the ID of the state
    directory, the same after `--fresh`. Runs with different state have different owners; the
    engine sets it before it calls a sink. `functions` are the functions that SQL can call.
    `lookup` is for sources: whether the node is a lookup table. `inputs` are the names in `from`
    of a transform.
    """

    pipeline: str = "penstock"
    node: str = "node"
    state: Path | None = None
    base: Path = field(default_factory=Path.cwd)
    project: Path = Path("/")
    topic: str | None = None
    owner: str = ""
    functions: UserFunctions = NO_FUNCTIONS
    lookup: bool = False
    inputs: tuple[str, ...] = ()


class Component(Generic[C]):
    """The base class of sources, transforms, sinks and formats, selected by `type:`.

    The type argument of a subclass is the class of its options (`class Mine(Sink[MyConfig])`). Its
    docstring is its documentation, with an example in a fenced yaml block that a test validates.
    The attributes declare its guarantees.
    """

    sdk_version: ClassVar[int] = SDK_VERSION
    """The version of the SDK for which a component of another package is written."""
    capabilities: frozenset[Capability] = frozenset()
    """The capabilities of the class. A component adds capabilities of its options on creation."""
    optional_capabilities: ClassVar[Mapping[Capability, str]] = {}
    """Capabilities that options add, each with the option as written in a pipeline file."""
    parallelism: str = ""
    """The unit of parallelism, such as "a topic partition"."""
    acknowledges: str | None = ""
    """The condition of an acknowledgement, sent by a source or awaited by a sink; None: never."""
    variants: ClassVar[tuple[str, ...]] = ()
    """The options that change these attributes, as written in a pipeline file."""
    extra: ClassVar[str | None] = None
    """The extra of the package that installs the client libraries."""
    client_modules: ClassVar[tuple[str, ...]] = ()
    """The modules of the client libraries, which are imported lazily."""
    config_type: ClassVar[type[Config]] = Config

    def __init__(self, config: C, context: Context | None = None) -> None:
        self.config = config
        self.context = context or Context()

    @classmethod
    def create(cls, config: C, context: Context | None = None) -> Component[C]:
        """Creates the component of a `type:` with these options.

        Returns an instance of this class, or of another class that the options select.
        """
        return cls(config, context)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__dict__.get("__orig_bases__", ()):
            for argument in get_args(base) if get_origin(base) else ():
                if isinstance(argument, type) and issubclass(argument, Config):
                    cls.config_type = argument

    def required_extras(self) -> frozenset[str]:
        """Returns the extras of the packages that the component needs with its options.

        The default is that of the class.
        """
        return frozenset({self.extra} if self.extra else ())

    def topic(self) -> str | None:
        """Returns the single topic of all payloads, the subject in a schema registry, or None."""
        return None

    def validate(self) -> None:
        """Checks the options beyond their types, without network access or side effects.

        Raises UserError, or ValidationErrors for several; OptionError locates an option. The
        default raises MissingExtra if one of `client_modules` cannot be imported.
        """
        for module in self.client_modules:
            if find_spec(module) is None:
                raise MissingExtra.of(self.extra or "", module)

    def check(self) -> None:
        """Checks that the external system is reachable, without consuming data.

        Raises Transient or Permanent with a hint. The default returns immediately.
        """

    def close(self) -> None:
        """Releases resources held by the component. Called once, also after a failure."""

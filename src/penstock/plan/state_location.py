"""Location of the state of a pipeline: a local directory, or the URL of an object store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from penstock.core.cache import cache_directory
from penstock.core.errors import OptionError, PenstockError, PlanError
from penstock.core.text import did_you_mean
from penstock.sdk.object_client import check_url
from penstock.sdk.object_store import STORE_SCHEMES, StorageOptions, has_credentials
from penstock.spec.model_validation import validate_model
from penstock.spec.validate import Pipeline

_ROUTE = ("runtime", "state")
STORAGE_ROUTE = ("runtime", "storage")


@dataclass(frozen=True)
class StateLocation:
    """The location of a state. `directory` has the local files of a run.

    With a `url` the state is in an object store, and the directory is a copy of it.
    """

    directory: Path
    url: str | None = None
    storage: StorageOptions | None = None

    def __str__(self) -> str:
        return str(self.directory) if self.url is None else f"{self.url}, copy in {self.directory}"


def locate_state(pipeline: Pipeline, errors: list[PenstockError]) -> StateLocation:
    """Returns the location of the state of a pipeline. Appends errors of its options."""
    runtime, name = pipeline.spec.runtime, pipeline.name
    options = _options(pipeline, errors)
    if "://" not in runtime.state:
        if runtime.storage:
            errors.append(
                _error(
                    pipeline, STORAGE_ROUTE,
                    "expected the URL of an object store in runtime.state, "
                    f"found the directory {runtime.state}", "invalid-option",
                    "Remove storage, or set state to a URL such as s3://bucket/prefix.",
                )
            )  # fmt: skip
        return StateLocation(pipeline.source_map.base(()) / runtime.state / name)
    errors += _url_errors(pipeline, runtime.state, options or StorageOptions())
    url = f"{runtime.state.rstrip('/')}/{name}"
    digest = blake2b(url.encode(), digest_size=8).hexdigest()
    return StateLocation(cache_directory() / "state" / digest / name, url, options)


def _options(pipeline: Pipeline, errors: list[PenstockError]) -> StorageOptions | None:
    stored = pipeline.spec.runtime.storage
    if not stored:
        return None
    options, found = validate_model(
        StorageOptions, stored, pipeline.source_map, STORAGE_ROUTE, subject="runtime.storage"
    )
    errors += found
    return options


def _url_errors(pipeline: Pipeline, url: str, options: StorageOptions) -> Iterator[PlanError]:
    scheme, _, path = url.partition("://")
    if scheme not in STORE_SCHEMES:
        yield _error(
            pipeline, _ROUTE,
            f"expected a directory, or a URL of one of {', '.join(STORE_SCHEMES)}, found {scheme}://",
            "unsupported-scheme", did_you_mean(scheme, STORE_SCHEMES),
        )  # fmt: skip
    elif has_credentials(url):
        yield _error(
            pipeline, _ROUTE, "expected a URL without credentials, because URLs appear in messages",
            "invalid-option", "Set runtime.storage.auth, or the variables of the environment.",
        )  # fmt: skip
    elif not path.partition("/")[0] or "?" in path:
        yield _error(
            pipeline, _ROUTE, f"expected a bucket and a prefix, found {url}", "invalid-option",
            f"Write a URL such as {scheme}://bucket/prefix.",
        )  # fmt: skip
    else:
        try:
            check_url(url, options, extra=None)
        except OptionError as error:
            route = _ROUTE if error.option == ("path",) else STORAGE_ROUTE
            yield _error(pipeline, route, error.message, "invalid-option", error.hint)


def _error(
    pipeline: Pipeline, route: tuple[str, ...], message: str, code: str, hint: str | None
) -> PlanError:
    return PlanError(message, code=code, hint=hint, where=pipeline.source_map.value(route))

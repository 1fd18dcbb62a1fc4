"""Errors of Spark while it reads or writes a format."""

from __future__ import annotations

from penstock.connectors.spark.providers import PROVIDERS, native_of, package_of
from penstock.core.error_codec import decode
from penstock.core.errors import OptionError, PenstockError, Permanent, Transient
from penstock.core.text import did_you_mean, nearest, shorten

_NO_PROVIDER = ("DATA_SOURCE_NOT_FOUND", "Failed to find data source", "_PROVIDER_NOT_FOUND")


def translate_error(error: Exception, provider: str, verb: str) -> PenstockError | None:
    """Returns the error of Penstock for one of Spark that `read` or `write` has raised.

    Returns None for an error that is not one of the format, as of the tasks that compute the rows.
    """
    if isinstance(error, PenstockError):
        return error
    from py4j.protocol import Py4JError
    from pyspark.errors import (
        AnalysisException,
        IllegalArgumentException,
        PySparkException,
        PythonException,
    )

    if not isinstance(error, PySparkException | Py4JError):
        return None
    text = str(error)
    if (found := decode(text)) is not None or isinstance(error, PythonException):
        return found
    if any(mark in text for mark in _NO_PROVIDER):
        return _no_provider(provider)
    reason = shorten(" ".join(text.split("\n\tat ")[0].split()), 400)
    message = f"Spark could not {verb} the format {provider}: {reason}"
    hint = "Check provider, path and options against the documentation of the format."
    if isinstance(error, AnalysisException | IllegalArgumentException):
        return Permanent(message, code="rejected", hint=hint)
    return Transient(message, hint=hint)


def _no_provider(provider: str) -> OptionError:
    """Returns the error of a format that Spark does not know."""
    import pyspark

    known = {name.lower(): name for name in PROVIDERS}
    name = known.get(provider.lower()) or nearest(provider, PROVIDERS)
    package = None if name is None else package_of(name, pyspark.__version__)
    native = None if name is None else native_of(name)
    if package is not None:
        hint = f"Set runtime.packages: [{package}]" + (f", or use {native}." if native else ".")
        if name != provider:
            hint = f"Did you mean {name}? {hint}"
    else:
        hint = did_you_mean(provider, PROVIDERS) or (
            "Set runtime.packages to the Maven coordinates of the format."
        )
    return OptionError.of(
        "provider", message=f'Spark has no format "{provider}"', code="unknown-provider", hint=hint
    )

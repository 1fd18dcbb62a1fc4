"""Settings of Spark's log, for Log4j."""

from __future__ import annotations

from pathlib import Path

from penstock.core.known_secrets import concealed_forms

_SETTINGS = """\
status = off
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
logger.trigger.name = org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor
logger.trigger.level = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.filePermissions = rw-------
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = {pattern}
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""
_PATTERN = "%d{yyyy-MM-dd'T'HH:mm:ss.SSSX}{UTC} %p %c{1}: "
_TEXT = "%m%n%ex"


def log_settings(file: Path) -> str:
    """Returns the settings of a log in a file, with asterisks in place of known secrets."""
    return _SETTINGS.format(file=_log_path(file), pattern=_log_pattern())


def _log_path(file: Path) -> str:
    """Returns a path in Java properties, without characters that Log4j replaces."""
    path = file.as_posix().replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return path.replace("$", "$$")


def _log_pattern() -> str:
    """Returns the pattern of a log line with asterisks in place of known secrets."""
    forms = concealed_forms()
    if not forms:
        return _PATTERN + _TEXT
    regex = "|".join("".join(map(_code_units, form)) for form in forms)
    return f"{_PATTERN}%replace{{{_TEXT}}}{{{regex}}}{{**********}}"


def _code_units(character: str) -> str:
    """Returns a character as escapes of a regular expression of Java, in Java properties."""
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\\\u{units[i : i + 4]}" for i in range(0, len(units), 4))

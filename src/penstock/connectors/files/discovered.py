"""Discovered files: the log, and the ways to find new files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from penstock.connectors.files.base import log_base, record_base
from penstock.connectors.files.cloud_store import prefixes_of_earlier_versions
from penstock.connectors.files.config import FilesSourceConfig
from penstock.connectors.files.discovery import Discovery
from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.log import DiscoveryLog
from penstock.connectors.files.notifications.receiver import Receiver
from penstock.connectors.files.pace import ListingPace
from penstock.core.paths import Project
from penstock.sdk import Context


class DiscoveredFiles:
    """The files that a source has discovered, in the log of its state directory.

    `discovery` returns the files of the source. With notifications files are listed once, or
    never. Without a state directory, or with a temporary one, the files of deleted messages could
    not be recorded: then notifications are not received, and files are listed.
    """

    def __init__(
        self, config: FilesSourceConfig, context: Context, discovery: Callable[[], Discovery],
        *, is_temporary: bool,
    ) -> None:  # fmt: skip
        self._config, self._context, self._discovery = config, context, discovery
        self._pace = ListingPace()
        self._receiver: Receiver | None = None
        if config.notifications is not None and context.state is not None and not is_temporary:
            self._receiver = Receiver(config.notifications, watch=config.watch)
        self._end: int | None = None

    @cached_property
    def _base(self) -> Path:
        context = self._context
        return log_base(context.state, context.project, self._config.paths)

    @cached_property
    def log(self) -> DiscoveryLog:
        """The log."""
        state = self._context.state
        path = state / "files.log" if state is not None else None
        prefixes = prefixes_of_earlier_versions(self._config.paths)
        log = DiscoveryLog(path, Project(self._base), prefixes)
        log.refresh()
        return log

    def update(self, start: int) -> int:
        """Records new files, and returns the number of all. The files before `start` were read.

        Without `watch` and `tail` only the first call finds new files.
        """
        is_first = self._end is None
        if is_first or self._config.watch or self._config.tail:
            self._discover(start, is_first=is_first)
            self._end = len(self.log)
        return self._end or 0

    def close(self) -> None:
        """Closes connections."""
        if self._receiver is not None:
            self._receiver.close()

    def _discover(self, start: int, *, is_first: bool) -> None:
        receiver, discovery = self._receiver, self._discovery()
        if receiver is None:
            lists = is_first or self._pace.is_due()
        else:
            lists = is_first and self._config.lists
        if lists:
            self._record(start, lambda log: discovery.new_ranges(log, self._pace))
        if receiver is not None and receiver.is_due():
            receiver.drain(
                lambda urls: self._record(start, lambda log: discovery.notified_ranges(urls, log))
            )

    def _record(self, start: int, find: Callable[[DiscoveryLog], Sequence[FileRange]]) -> None:
        """Appends files to the log, to which other queries append as well."""
        log = self.log
        with log.locked():
            record_base(self._context.state, self._base)
            if start > len(log):
                raise log.missing_error(0, start)
            log.discard(start)
            log.append(find(log))
            if self._config.tail:
                log.compact()

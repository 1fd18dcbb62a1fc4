"""Watcher: opens and resolves alerts, and sends their messages, in threads of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from penstock.core.log import Log
from penstock.server.alerts.conditions import Condition, Observation, RuleKind
from penstock.server.alerts.delivery import Delivery
from penstock.server.store.alerts import Alerts, Rule
from penstock.server.store.lease import Lease
from penstock.server.views import Views

PERIOD = 5.0
"""Seconds between two evaluations, and between two searches for messages that are due."""
Key = tuple[str, str]
"""The name of a rule and the ID of a pipeline."""


class Watcher:
    """Evaluates all rules. Open alerts are those of the store, also after a restart."""

    def __init__(
        self, alerts: Alerts, views: Views, delivery: Delivery, lease: Lease, log: Log,
        period: float = PERIOD,
    ) -> None:  # fmt: skip
        self._alerts, self._views, self._delivery = alerts, views, delivery
        self._lease, self._log, self._period = lease, log, period
        self._conditions: dict[Key, tuple[Rule, Condition]] = {}
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(step,), name=name, daemon=True)
            for name, step in (("alerts", self.evaluate), ("messages", delivery.send_due))
        ]

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Ends the threads. Messages that are not sent remain due."""
        self._closed.set()
        for thread in self._threads:
            thread.join(2.0)

    def evaluate(self) -> None:
        """Evaluates all rules once. Without rules and open alerts it reads only them."""
        opened = {(each["rule"], each["pipeline"]): each for each in self._alerts.open_alerts()}
        rules = [rule for rule in self._alerts.rules() if rule.enabled]
        if (not rules and not opened) or not self._views.ready:
            return
        found = self._messages(rules, opened.keys())
        by_name = {rule.name: rule for rule in rules}
        for key, (name, message) in found.items():
            if key not in opened:
                self._alerts.open(by_name[key[0]], key[1], name, message)
        for key, alert in opened.items():
            if key not in found:
                rule = by_name.get(key[0])
                channels = () if rule is None or rule.silent else rule.channels
                self._alerts.resolve(alert["number"], channels)

    def _messages(self, rules: list[Rule], opened: Collection[Key]) -> dict[Key, tuple[str, str]]:
        """Returns the names of pipelines and the messages of all conditions that hold."""
        found: dict[Key, tuple[str, str]] = {}
        known: dict[Key, tuple[Rule, Condition]] = {}
        watches_disks = any(rule.kind == "disk" for rule in rules)
        for summary in self._views.summaries():
            free = self._views.free_share(summary.id) if watches_disks else None
            seen = Observation(summary.health, self._views.numbers(summary.id), free=free)
            for rule in rules:
                if rule.pipelines is not None and summary.id not in rule.pipelines:
                    continue
                key = rule.name, summary.id
                known[key] = self._condition(key, rule, key in opened)
                message = known[key][1].observe(seen)
                if message is not None:
                    found[key] = summary.name, message
        self._conditions = known
        return found

    def _condition(self, key: Key, rule: Rule, opened: bool) -> tuple[Rule, Condition]:
        """Returns the condition of a rule so far; a changed rule begins again."""
        before = self._conditions.get(key)
        same = before is not None and (
            (before[0].kind, before[0].threshold, before[0].minutes)
            == (rule.kind, rule.threshold, rule.minutes)
        )
        if before is not None and same:
            return rule, before[1]
        kind: RuleKind = rule.kind  # type: ignore[assignment]
        return rule, Condition(kind, rule.threshold, rule.minutes, opened and before is None)

    def _repeat(self, step: Callable[[], None]) -> None:
        known = None
        while not self._closed.wait(self._period):
            try:
                self._lease.check()
                step()
                known = None
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                if text != known:
                    self._log.error("alerts failed", error=text)
                known = text

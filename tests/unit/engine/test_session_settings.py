"""Settings of a Spark session."""

from __future__ import annotations

from penstock.engine.spark_session.settings import SessionSettings

KEPT = "spark.sql.ui.retainedExecutions"


def test_ended_executions_are_kept_for_the_ui() -> None:
    default = SessionSettings().effective_conf()[KEPT]
    assert int(default) < 1000
    assert KEPT not in SessionSettings(conf={"spark.ui.enabled": "true"}).effective_conf()
    assert SessionSettings(conf={KEPT: "7"}).effective_conf()[KEPT] == "7"

"""Settings of a Spark session."""

from __future__ import annotations

import pytest

from penstock.engine.spark_session.java_flags import LATE_C2
from penstock.engine.spark_session.jvm import Length
from penstock.engine.spark_session.settings import SessionSettings

C2_RARELY = " ".join(["", *LATE_C2])
KEPT = "spark.sql.ui.retainedExecutions"


def test_ended_executions_are_kept_for_the_ui() -> None:
    default = SessionSettings().effective_conf()[KEPT]
    assert int(default) < 1000
    assert KEPT not in SessionSettings(conf={"spark.ui.enabled": "true"}).effective_conf()
    assert SessionSettings(conf={KEPT: "7"}).effective_conf()[KEPT] == "7"


@pytest.mark.parametrize(
    ("conf", "length", "flags"),
    [
        ({}, "endless", f"-XX:+UseSerialGC -Xss16m{C2_RARELY}"),
        ({}, "seconds", "-XX:+UseSerialGC -Xss16m -XX:TieredStopAtLevel=1"),
        ({"spark.executor.memory": "8g"}, "endless", f"-XX:+UseG1GC -Xss16m{C2_RARELY}"),
        ({"spark.executor.extraJavaOptions": "-XX:+UseZGC"}, "minutes", f"-Xss16m{C2_RARELY}"),
        ({"spark.executor.defaultJavaOptions": "-Xss1m"}, "seconds", "-Xss1m"),
    ],
)
def test_the_flags_of_executors(conf: dict[str, str], length: Length, flags: str) -> None:
    settings = SessionSettings(master="spark://host:7077", conf=conf, length=length)
    assert settings.effective_conf()["spark.executor.defaultJavaOptions"] == flags
    assert "spark.executor.defaultJavaOptions" not in SessionSettings().effective_conf()

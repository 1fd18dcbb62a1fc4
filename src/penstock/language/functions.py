"""Functions of SQL with their forms and documentation: of Spark, windows of events, DataFusion."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from penstock.sql.datafusion.rules.functions import NAMES
from penstock.sql.dialect.window_calls import FORMS
from penstock.sql.functions import BUILTINS


@dataclass(frozen=True)
class FunctionHelp:
    """A function: its forms, as `abs(expr)`, and its documentation."""

    name: str
    forms: tuple[str, ...]
    text: str


_WINDOWS = {
    "tumble": "Groups rows by windows of event time of a fixed width, which do not overlap.",
    "hop": "Groups rows by windows of event time of a fixed width, one of which begins at each "
    "multiple of the slide.",
    "session": "Groups rows by sessions of event time, which end with a gap without rows.",
}
_CALENDAR = FunctionHelp(
    "calendar_window", ("calendar_window(time, unit[, zone])",),
    "Groups rows by days, weeks, months, quarters or years of the calendar in a time zone.",
)  # fmt: skip


@cache
def function_help() -> dict[str, FunctionHelp]:
    """Returns all functions by name in lower case."""
    text = files("penstock.language").joinpath("function_usages.json").read_text("utf-8")
    spark = {name: _of_usages(name, usages) for name, usages in json.loads(text).items()}
    windows = {
        name: FunctionHelp(name, (FORMS[name][1],), words) for name, words in _WINDOWS.items()
    }
    aliases = {
        name: FunctionHelp(
            name, tuple(form.replace(f"{other}(", f"{name}(", 1) for form in spark[other].forms),
            f"The function `{other}` of Spark. {spark[other].text}",
        )
        for name, other in NAMES.items()
        if other in spark
    }  # fmt: skip
    rows = {name: FunctionHelp(name, (f"{name}(...)",), "Returns rows.") for name in BUILTINS}
    return {**rows, **aliases, **spark, **windows, _CALENDAR.name: _CALENDAR}


def _of_usages(name: str, usages: list[list[str]]) -> FunctionHelp:
    forms = tuple(form for form, _ in usages)
    texts = dict.fromkeys(text for _, text in usages)
    return FunctionHelp(name, forms, "\n\n".join(texts))

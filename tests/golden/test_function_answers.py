"""The answers to samples of SQL functions are those stored beside the samples.

PENSTOCK_UPDATE_GOLDEN=1 writes the answers of Penstock and DataFusion.
"""

from __future__ import annotations

import os

import pytest
from function_engines import (
    ask_both,
    ask_datafusion,
    ask_penstock,
    is_datafusion_error,
    message,
    routines,
)
from function_samples import (
    FAMILIES,
    FOLDER,
    Answers,
    answers_file,
    read_answers,
    read_family,
    written,
)
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.sql.text.edits import DialectError


@pytest.mark.spark
@pytest.mark.parametrize("name", FAMILIES)
def test_penstock(name: str, penstock_spark: SparkSession) -> None:
    family = read_family(name)
    if os.environ.get("PENSTOCK_UPDATE_GOLDEN"):
        found = ask_both(penstock_spark, family, family.texts)
        answers_file(name).write_text(written(found), encoding="utf-8")
    stored = read_answers(name)
    answered = [text for text in family.texts if stored[text].error is None]
    answers = ask_penstock(penstock_spark, family, answered)
    assert dict(zip(answered, answers, strict=True)) == {
        text: stored[text].penstock for text in answered
    }
    special = [text for text in family.texts if stored[text].arroyo is not None]
    there = ask_penstock(penstock_spark, family, special, arroyo=True)
    assert dict(zip(special, there, strict=True)) == {text: stored[text].arroyo for text in special}
    for text in stored.keys() - set(answered):
        with pytest.raises((DialectError, PySparkException)) as caught:
            ask_penstock(penstock_spark, family, [text])
        assert message(caught.value) == stored[text].error


@pytest.mark.parametrize("name", FAMILIES)
def test_datafusion(name: str) -> None:
    family, stored = read_family(name), read_answers(name)
    if not family.in_datafusion:
        assert {answers.datafusion for answers in stored.values()} == {None}
        return
    answered = [text for text in family.texts if stored[text].datafusion is not None]
    answers = ask_datafusion(family, answered)
    assert dict(zip(answered, answers, strict=True)) == {
        text: stored[text].datafusion for text in answered
    }
    for text in stored.keys() - set(answered):
        with pytest.raises(Exception) as caught:
            ask_datafusion(family, [text])
        assert is_datafusion_error(caught.value)


@pytest.mark.parametrize("name", FAMILIES)
def test_each_difference_has_a_reason(name: str) -> None:
    family, stored = read_family(name), read_answers(name)
    assert set(stored) == set(family.texts)
    for sample in family.samples:
        differs = any(_differs(stored[text]) for text in sample.texts.values())
        assert differs == (sample.reason is not None) or not family.in_datafusion, sample


@pytest.mark.parametrize("name", FAMILIES)
def test_scripts_of_arroyo_have_the_answers_of_datafusion(name: str) -> None:
    for text, answers in read_answers(name).items():
        if answers.arroyo is not None:
            assert answers.arroyo == answers.datafusion, text


def _differs(answers: Answers) -> bool:
    """Returns whether answers differ without a hint of Penstock that says why."""
    return answers.penstock != answers.datafusion and ": use " not in (answers.error or "")


def test_each_function_of_datafusion_has_a_sample() -> None:
    sampled = {function for name in FAMILIES for function in read_family(name).functions}
    assert routines() - sampled == set()
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {*FAMILIES, "rows"}

"""The files, variables and secrets that a deployment finds in a pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest
from project_files import ENVIRONMENT, SECRET, write_files

from penstock import app
from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError
from penstock.deploy.project import python_files, read_project

MEMORY = """\
name: small
sources: {rows: {type: memory, rows: [{id: 1}], schema: id BIGINT}}
"""


@pytest.mark.slow
def test_all_files_that_a_run_reads(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "PENSTOCK_SECRETS": str(tmp_path / "secrets")}
    project = read_project([write_files(tmp_path)], environment)
    assert project.root == tmp_path and project.pipeline_files == ("shop/shop.yaml",)
    assert sorted(project.files) == [
        "common/sinks.yaml", "shop/certs/ca.pem", "shop/certs/shop.pem", "shop/data/names.csv",
        "shop/functions.py", "shop/pricing.py", "shop/protos/money.proto",
        "shop/protos/order.proto", "shop/rules/__init__.py", "shop/rules/vat.py",
        "shop/shop.yaml", "shop/tools.py",
    ]  # fmt: skip
    assert project.secret_files == ("shop/certs/shop.key",)
    assert project.secrets == ("a/key",)
    assert project.variables == {"KAFKA": True, "PASSWORD": True, "TOPIC": False}
    assert not any(SECRET.encode() in content for content in project.files.values())
    (warning,) = [each for each in project.warnings if each.code == "local-path"]
    assert 'source "raw"' in warning.message


def test_the_module_of_a_step(tmp_path: Path) -> None:
    """With the modules beside the pipeline and in the directories of the step."""
    step = "{type: python, module: prices, function: convert, python_path: [lib]}"
    text = MEMORY + f"transforms: {{a: {{type: steps, from: rows, steps: [{step}]}}}}\n"
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "prices.py").write_text("import rates\n")
    (tmp_path / "rates.py").write_text("")
    file = tmp_path / "small.yaml"
    file.write_text(text + "sinks: {out: {type: blackhole, from: a}}\n")
    found = python_files(app.plan(file))
    assert sorted(path.relative_to(tmp_path).as_posix() for path in found) == [
        "lib/prices.py", "rates.py"
    ]  # fmt: skip


@pytest.mark.slow
def test_variables_need_no_values(tmp_path: Path) -> None:
    path = write_files(tmp_path)
    project = read_project([path], {"PENSTOCK_SECRETS": str(tmp_path / "secrets")})
    assert project.variables["PASSWORD"]


@pytest.mark.parametrize("local", [True, False])
def test_a_master_needs_no_value(tmp_path: Path, local: bool) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(
        MEMORY + "sinks: {out: {type: blackhole, from: rows}}\nruntime: {master: '${MASTER}'}\n"
    )
    assert read_project([path], {}, local=local).variables == {"MASTER": True}


def test_a_number_without_a_value_is_an_unset_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PARTITIONS", raising=False)
    path = tmp_path / "small.yaml"
    path.write_text(
        MEMORY + "sinks: {out: {type: blackhole, from: rows}}\n"
        'runtime: {partitions: "${PARTITIONS}"}\n'
    )
    with pytest.raises(PenstockError) as error:
        read_project([path], {})
    assert error.value.code == "unset-variable"


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("{type: kafka, from: rows, brokers: b, topic: t, auth: {mechanism: PLAIN, username: u, "
         "password: hunter2}}", "sinks.out.auth.password is a secret"),
        ("{type: http, from: rows, url: 'http://ann:hunter2@host/'}", "a URL contains a password"),
        ("{type: http, from: rows, url: 'http://h', headers: {X-Api-Key: hunter2}}",
         "sinks.out.headers.X-Api-Key is a secret"),
        ("{type: blackhole, from: rows}\nruntime: {spark: {spark.ssl.keyPassword: hunter2}}",
         "runtime.spark.spark.ssl.keyPassword is a secret"),
        ("{type: blackhole, from: rows}\nruntime: {state: 's3://b/s', storage: {auth: {access_key: "
         "k, secret_key: hunter2}}}", "runtime.storage.auth.secret_key is a secret"),
        ("{type: blackhole, from: s}\ntransforms:\n  s: {type: steps, from: rows, steps: [{type: "
         "sql, query: 'SELECT 1', lookups: [{table: t, key: {value: k}, url: 'redis://h', "
         "decode: {type: json}, auth: {username: u, password: hunter2}}]}]}",
         "transforms.s.steps[0].lookups[0].auth.password is a secret"),
        ("{type: blackhole, from: s}\ntransforms:\n  s: {type: steps, from: rows, inputs: {i: "
         "{tables: {query: 'SELECT 1', type: mysql, url: 'mysql://h/d', "
         "auth: {username: u, password: hunter2}}}}}",
         "transforms.s.inputs.i.tables.auth.password is a secret"),
    ],
)  # fmt: skip
def test_a_secret_in_a_file_is_an_error(tmp_path: Path, sink: str, message: str) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(MEMORY + f"sinks:\n  out: {sink}\n")
    with pytest.raises(PenstockError) as error:
        read_project([path], {})
    report = format_error(error.value)
    assert "secret-in-file" in report and message in report and "small.yaml:" in report
    assert "hunter2" not in report


def test_a_secret_in_a_phase_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(
        "name: small\nsources:\n  rows:\n    type: hybrid\n    schema: id LONG\n    phases:\n"
        "      - {type: memory, rows: []}\n"
        "      - {type: postgres, url: 'postgresql://h/d', table: t, auth: {username: u, password: "
        "hunter2}}\nsinks: {out: {type: blackhole, from: rows}}\n"
    )
    with pytest.raises(PenstockError) as error:
        read_project([path], {})
    report = format_error(error.value)
    assert "sources.rows.phases[1].auth.password is a secret" in report
    assert "small.yaml:8:" in report and "hunter2" not in report


def test_files_of_other_tools_are_converted_first(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(
        "streams:\n  - input: {type: generate, context: '{}', interval: 1s, batch_size: 1}\n"
        "    pipeline: {thread_num: 1, processors: []}\n    output: {type: stdout}\n"
    )
    with pytest.raises(PenstockError) as error:
        read_project([path], {})
    assert "penstock convert" in str(error.value.hint)
    with pytest.raises(PenstockError, match="standard input"):
        read_project([Path("-")], {})

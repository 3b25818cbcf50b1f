from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from streaming.catalog import statements
from streaming.config import load_settings
from streaming.exceptions import SetupError
from streaming.job import run as job
from streaming.job.session import cause_of, register


class Session:
    """Takes statements, as Spark's session does, and refuses from one of them on (`tests/catalog/test_spark.py` has a
    real one)."""

    def __init__(self, refused: str | None = None) -> None:
        self.refused = refused
        self.taken: list[str] = []
        self.own: list[str] = []

    def newSession(self) -> Any:  # noqa: N802 - Spark's name
        fresh = Session(self.refused)
        fresh.own = self.taken
        return fresh

    def sql(self, statement: str) -> None:
        if self.refused is not None and self.refused in statement:
            message = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta.\nmore"
            raise AnalysisException(message)
        self.own.append(statement)


def test_the_job_runs_the_statements(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    spark = Session()
    assert register(spark, lake, "main.evenkeel") is True
    assert spark.taken == statements("spark", lake, "main.evenkeel")


def test_the_cause_is_told_without_what_the_bridge_says_before_it() -> None:
    # (Spark 4.2.0 without Delta's jars.)
    text = (
        "An error occurred while calling o45.sql.\n: org.apache.spark.SparkClassNotFoundException: "
        "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta.\n\tat org.apache.spark.sql.Any"
    )
    assert cause_of(text) == (
        "org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta."
    )
    assert cause_of("[SCHEMA_NOT_FOUND] no such schema\nmore") == "[SCHEMA_NOT_FOUND] no such schema"
    assert cause_of("") == "no reason given"


def test_a_catalog_that_refuses_is_one_warning_and_the_job_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = str(tmp_path / "lake")
    with caplog.at_level(logging.INFO):
        assert register(Session("USING delta"), lake, "evenkeel") is False
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "Failed to find the data source: delta." in record.getMessage()
    assert "\n" not in record.getMessage()


def test_nothing_is_registered_unless_a_schema_is_set() -> None:
    assert load_settings().job.catalog_schema is None
    assert load_settings(job={"catalog_schema": "main.evenkeel"}).job.catalog_schema == "main.evenkeel"
    for wrong in ("", ".", "main."):
        with pytest.raises(SetupError, match=r"job\.catalog_schema"):
            load_settings(job={"catalog_schema": wrong})


class _EndedError(ConnectionError):
    pass


@pytest.mark.parametrize("schema", [None, "evenkeel"])
def test_a_job_registers_its_tables_when_they_are_there_and_before_its_query_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str | None
) -> None:
    done: list[tuple[object, ...]] = []
    lake = tmp_path / "lake"

    def registered(_: object, root: str, name: str) -> None:
        done.append(("registered", root, name, (lake / "advice").is_dir()))

    def query_started(*_: object, **__: object) -> None:
        done.append(("started",))
        raise _EndedError

    monkeypatch.setattr(job, "start_session", lambda *_: object())
    monkeypatch.setattr(job, "register", registered)
    monkeypatch.setattr(job, "start_query", query_started)
    with pytest.raises(job.QueryEndedError):
        job.run(load_settings(lake=str(lake), job={"catalog_schema": schema}))
    expected = [("registered", str(lake), schema, True)] if schema else []
    assert done == [*expected, ("started",)]

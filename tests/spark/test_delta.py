from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from streaming.config import load_settings
from streaming.exceptions import SetupError
from streaming.jars import classpath
from streaming.maintain import maintain
from streaming.spark.delta import delta_settings, jars_for
from tests.maintain.build import new_lake


@pytest.fixture
def no_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path / "cache"))
    classpath.cache_clear()


@pytest.fixture
def own_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty `spark-defaults.conf`, and no spark-submit above this process."""
    for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path / "spark-defaults.conf"


@pytest.mark.usefixtures("own_conf")
def test_a_session_that_writes_has_the_jars_the_extension_and_times_that_all_readers_understand() -> None:
    settings = delta_settings()
    assert settings["spark.jars"] == jars_for()
    assert {Path(jar).name.rsplit("-", 1)[0] for jar in jars_for().split(",")} >= {"delta-spark_4.2_2.13"}
    assert settings["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert settings["spark.sql.parquet.outputTimestampType"] == "TIMESTAMP_MICROS"


@pytest.mark.usefixtures("no_jars")
def test_a_platform_that_brings_delta_keeps_its_own(own_conf: Path) -> None:
    own_conf.write_text("spark.sql.extensions  com.x.Y,io.delta.sql.DeltaSparkSessionExtension\n", encoding="utf-8")
    settings = delta_settings()
    assert not {"spark.jars", "spark.sql.extensions"} & settings.keys()
    assert settings["spark.sql.parquet.outputTimestampType"] == "TIMESTAMP_MICROS"


@pytest.mark.usefixtures("own_conf")
def test_under_spark_submit_the_jars_are_its_own_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert "spark.jars" not in delta_settings()


@pytest.mark.usefixtures("no_jars", "own_conf")
def test_missing_jars_are_named_before_spark_starts(tmp_path: Path) -> None:
    lake = new_lake(tmp_path)
    with pytest.raises(SetupError, match=r"^The jar io\.delta:\S+ has not been downloaded .*streaming\.jars fetch"):
        maintain(load_settings(lake=lake.root), Console(), with_spark=True)

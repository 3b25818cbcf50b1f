from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from rich.console import Console

from streaming.config import load_settings
from streaming.exceptions import SetupError
from streaming.jars import classpath, find_java, jars_of
from streaming.job.class_archive import begin_to_write
from streaming.maintain import maintain
from streaming.spark import class_archive, use_prepared_home
from streaming.spark._spark_submit import command_of
from streaming.spark.session import as_s3a, jars_for, s3a_settings, settings_for
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
    settings = settings_for(with_delta=True, with_s3a=False)
    assert settings["spark.jars"] == jars_for("", with_delta=True, with_s3a=False)
    assert _names(settings["spark.jars"]) >= {"delta-spark_4.2_2.13"}
    assert settings["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert settings["spark.sql.parquet.outputTimestampType"] == "TIMESTAMP_MICROS"


@pytest.mark.usefixtures("no_jars")
def test_a_platform_that_brings_delta_keeps_its_own(own_conf: Path) -> None:
    own_conf.write_text("spark.sql.extensions  com.x.Y,io.delta.sql.DeltaSparkSessionExtension\n", encoding="utf-8")
    settings = settings_for(with_delta=True, with_s3a=False)
    assert not {"spark.jars", "spark.sql.extensions"} & settings.keys()
    assert settings["spark.sql.parquet.outputTimestampType"] == "TIMESTAMP_MICROS"


@pytest.mark.usefixtures("own_conf")
def test_under_spark_submit_the_jars_are_its_own_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert "spark.jars" not in settings_for(with_delta=True, with_s3a=True)


_SECRETS = {"AWS_ACCESS_KEY_ID": "the-key", "AWS_SECRET_ACCESS_KEY": "the-secret", "AWS_SESSION_TOKEN": "the-token"}


@pytest.mark.usefixtures("own_conf")
def test_a_session_that_reaches_s3_has_its_jars_and_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**_SECRETS, "AWS_ENDPOINT_URL": "http://host:1", "AWS_REGION": "eu-central-1"}.items():
        monkeypatch.setenv(name, value)
    settings = settings_for(with_delta=False, with_s3a=True)
    jars = _names(settings["spark.jars"])
    assert jars >= {"hadoop-aws", "s3", "s3-transfer-manager", "sts"}
    assert not jars & {"bundle", "delta-spark_4.2_2.13"}
    assert not set(_SECRETS.values()) & set(" ".join(settings.values()).replace(",", " ").split())
    # Spark would put those of the environment there.
    assert {settings[f"spark.hadoop.fs.s3a.{name}"] for name in ("access.key", "secret.key", "session.token")} == {""}
    assert settings["spark.hadoop.fs.s3a.endpoint"] == "http://host:1"
    assert settings["spark.hadoop.fs.s3a.endpoint.region"] == "eu-central-1"
    assert settings["spark.hadoop.fs.s3a.path.style.access"] == "true"


@pytest.mark.usefixtures("own_conf")
def test_every_session_replaces_the_key_that_spark_takes_from_the_environment() -> None:
    settings = settings_for(with_delta=False, with_s3a=False)
    assert set(settings.values()) == {""}
    assert len([name for name in settings if name.endswith(("ecretAccessKey", "secret.key"))]) == 3


def test_it_reaches_the_store_as_delta_rs_does() -> None:
    amazon = s3a_settings("", {})
    assert "spark.hadoop.fs.s3a.endpoint" not in amazon
    assert amazon["spark.hadoop.fs.s3a.endpoint.region"] == "us-east-1"
    hosted = s3a_settings("", {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"})
    assert hosted["spark.hadoop.fs.s3a.path.style.access"] == "false"


def test_spark_keeps_a_checkpoint_where_the_setting_says_under_the_scheme_that_it_knows() -> None:
    assert as_s3a("s3://b/a team/c") == as_s3a("S3://b/a team/c") == "s3a://b/a team/c"
    for other in ("s3a://b/c", "/data/s3://c", "abfss://c@a/b"):
        assert as_s3a(other) == other


@pytest.mark.usefixtures("no_jars")
def test_a_platform_that_brings_s3a_keeps_its_own(own_conf: Path) -> None:
    own_conf.write_text(
        "spark.jars.packages  org.apache.hadoop:hadoop-aws:3.5.0\n"
        "spark.hadoop.fs.s3a.aws.credentials.provider  com.example.Vault\n",
        encoding="utf-8",
    )
    settings = settings_for(with_delta=False, with_s3a=True)
    assert not {"spark.jars", "spark.hadoop.fs.s3a.aws.credentials.provider"} & settings.keys()
    assert settings["spark.hadoop.fs.s3a.secret.key"] == ""


@pytest.mark.usefixtures("no_jars", "own_conf")
def test_so_does_an_image_that_has_it_among_sparks_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "hadoop-aws-3.5.0.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert "spark.jars" not in settings_for(with_delta=False, with_s3a=True)


@pytest.mark.parametrize("jar", ["s3a", "spark"])
def test_no_jar_of_a_session_is_one_that_pyspark_ships_too(jar: str) -> None:
    shipped = _names(",".join(path.name for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar")))
    assert not shipped & {one.artifact for one in jars_of(jar)}


def _names(jars: str) -> set[str]:
    """Names of archives, without their releases."""
    return {re.sub(r"-\d[^/]*\.jar$", "", Path(jar).name) for jar in jars.split(",")}


@pytest.mark.usefixtures("no_jars", "own_conf")
def test_missing_jars_are_named_before_spark_starts(tmp_path: Path) -> None:
    lake = new_lake(tmp_path)
    with pytest.raises(SetupError, match=r"^The jar io\.delta:\S+ has not been downloaded .*streaming\.jars fetch"):
        maintain(load_settings(lake=lake.root), Console(), with_spark=True)


_OURS = ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that says nothing of Spark, and an empty cache; what a test adds to it is taken back."""
    for name in (*_OURS, "PYSPARK_GATEWAY_PORT", "MASTER"):
        monkeypatch.setenv(name, "")  # monkeypatch takes back only what it has seen
        monkeypatch.delenv(name)
    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def begun(environment: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Commands of processes that a test begins; none of them runs."""
    class_archive()  # asks Java for its release, once in a process
    commands: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: commands.append(command))
    return commands


@pytest.mark.parametrize("chosen", [*_OURS, "PYSPARK_GATEWAY_PORT", "MASTER"])
def test_what_a_user_or_a_platform_sets_of_spark_stays_as_it_is(
    environment: Path, monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    monkeypatch.setenv(chosen, "theirs")
    before = dict(os.environ)
    use_prepared_home()
    assert dict(os.environ) == before
    assert list(environment.iterdir()) == []


def test_without_a_place_to_write_spark_starts_as_it_is_installed(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (environment / "file").touch()
    monkeypatch.setenv("EVENKEEL_CACHE", str(environment / "file"))
    before = dict(os.environ)
    use_prepared_home()
    assert dict(os.environ) == before


@pytest.mark.parametrize("home", [None, "theirs"])
def test_no_archive_is_written_for_a_session_that_would_not_use_it(
    environment: Path, begun: list[object], monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    if home is not None:
        monkeypatch.setenv("SPARK_HOME", home)
    begin_to_write()
    assert (begun, list(environment.iterdir())) == ([], [])


@pytest.mark.usefixtures("environment")
def test_the_archive_of_the_prepared_home_is_written_if_it_is_missing(begun: list[object]) -> None:
    use_prepared_home()
    begin_to_write()
    assert len(begun) == 1
    class_archive().touch()
    begin_to_write()
    assert len(begun) == 1


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_written_archive_is_one_that_the_jvm_of_a_session_takes(environment: Path) -> None:
    subprocess.run([sys.executable, "-m", "streaming.job.class_archive"], check=True, timeout=600)
    use_prepared_home()
    loaded = environment / "loaded"
    # Without an archive that it can take, such a JVM does not start.
    os.environ["SPARK_SUBMIT_OPTS"] += f" -Xshare:on -Xlog:class+load:file={loaded}"
    subprocess.run([Path(os.environ["SPARK_HOME"]) / "bin" / "spark-submit", "--version"], check=True, timeout=120)
    assert "org.apache.spark.deploy.SparkSubmit source: shared objects file (top)" in loaded.read_text("utf-8")


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"spark.driver.memory": "777m"},
        {"spark.driver.extraClassPath": "/a/b.jar", "spark.driver.extraJavaOptions": "-Done=1 -Dtwo='2 3'"},
    ],
)
@pytest.mark.usefixtures("environment")
def test_a_session_starts_with_the_very_command_that_sparks_launcher_gives(asked: dict[str, str]) -> None:
    os.environ["JAVA_HOME"] = str(find_java().resolve().parents[1])
    use_prepared_home()
    arguments = [word for name, value in asked.items() for word in ("--conf", f"{name}={value}")]
    arguments += shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
    launcher = ["-cp", f"{os.environ['SPARK_HOME']}/jars/*", "org.apache.spark.launcher.Main"]
    told = subprocess.run(
        [find_java(), *launcher, "org.apache.spark.deploy.SparkSubmit", *arguments],
        env=os.environ | {"SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert command_of(arguments) == [word for word in told.stdout.replace("\n", "").split("\0") if word]


@pytest.mark.nightly
@pytest.mark.usefixtures("environment")
def test_whatever_is_no_session_is_started_by_sparks_own_script() -> None:
    use_prepared_home()
    submit = Path(os.environ["SPARK_HOME"]) / "bin" / "spark-submit"
    told = subprocess.run([submit, "--version"], capture_output=True, text=True, check=True, timeout=120)
    assert f"version {pyspark.__version__}" in told.stderr

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle

from streaming.cluster import spark_submit, submit
from streaming.cluster.spark_submit import pack
from streaming.config import JobSettings, KafkaSettings, Settings
from streaming.exceptions import SetupError
from streaming.job.operator import operator
from streaming.job.source import SourceSettings
from streaming.spark import jars_for

_SECRET = "correct-horse-battery-staple"


@pytest.mark.nightly
def test_what_executors_run_can_be_imported_from_the_packed_file_with_the_data_beside_it(tmp_path: Path) -> None:
    pack(tmp_path / "evenkeel.zip")
    code = (
        "import streaming.job.data_source, streaming.job.operator, streaming.offsets_log as log; "
        "print(streaming.__file__, log.decode_line({'key': '0002000161', 'value': None})['type'])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": "evenkeel.zip"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    place, decoded = run.stdout.split()
    assert place.endswith("evenkeel.zip/streaming/__init__.py")
    assert decoded == "GroupMetadata"


def test_no_secret_travels_in_the_operator_or_in_the_source(tmp_path: Path) -> None:
    kafka = KafkaSettings(sasl_password=_SECRET, ssl_password=_SECRET)
    settings = Settings(kafka=kafka, bus=kafka)
    assert _SECRET.encode() in cloudpickle.dumps(settings)  # otherwise the next line would prove nothing
    assert _SECRET.encode() not in cloudpickle.dumps(operator(settings))
    assert _SECRET not in SourceSettings.of(settings).option()


def test_a_secret_that_executors_would_not_get_is_named_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVENKEEL_KAFKA__SASL_PASSWORD", raising=False)
    with pytest.raises(SetupError, match=r"sasl_password does not reach the executors.*sasl_password_file") as refused:
        submit(Settings(kafka=KafkaSettings(sasl_password=_SECRET)), "spark://nowhere:7077")
    assert _SECRET not in str(refused.value)
    with pytest.raises(
        SetupError,
        match=r"^bus\.sasl_password does not.*in bus\.sasl_password_file.*EVENKEEL_CLUSTERS__DEFAULT__BUS__SASL",
    ):
        submit(Settings(bus=KafkaSettings(sasl_password=_SECRET)), "spark://nowhere:7077")


def test_a_spark_home_without_spark_submit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=f"SPARK_HOME is {tmp_path}, which has no bin/spark-submit"):
        submit(Settings(), "spark://nowhere:7077")


def test_a_signal_reaches_the_driver_alone_and_not_the_jvm_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = tmp_path / "entry.py"
    driver.write_text(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "print('ready', flush=True)\ntime.sleep(600)\n"
    )
    monkeypatch.setattr(spark_submit, "_ENTRY", driver)
    # The shell plays the JVM: if it got the signal, its exit code would be -15.
    command = ["bash", "-c", f"{sys.executable} {driver}; exit $?"]
    submitted = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert submitted.stdout is not None
    assert submitted.stdout.readline() == b"ready\n"
    with spark_submit._passed_on(submitted.pid):
        os.kill(os.getpid(), signal.SIGTERM)
        assert submitted.wait(60) == 7


@pytest.mark.parametrize(
    ("checkpoint", "configuration", "taken"),
    [
        ("/checkpoint", "", False),
        ("s3://b/checkpoint", "", True),
        ("s3a://b/checkpoint", "", True),
        ("s3://b/checkpoint", "--packages=org.apache.hadoop:hadoop-aws:3.5.0", False),
    ],
)
def test_jars_go_along_for_a_checkpoint_on_s3_alone(checkpoint: str, configuration: str, taken: bool) -> None:
    settings = Settings(lake="s3://b/lake", job=JobSettings(writer="spark"))
    expected = ["--jars", jars_for("", with_delta=False, with_s3a=True)] if taken else []
    assert spark_submit._jars(settings, checkpoint, configuration) == expected


@pytest.mark.parametrize(
    ("master", "host"),
    [
        ("spark://nowhere:7077", socket.getfqdn()),
        ("yarn", socket.getfqdn()),
        # From a pod the API server is reached by the pod's address; the loopback stands for both here.
        ("k8s://https://127.0.0.1:6443", "127.0.0.1"),
        ("k8s://https://127.0.0.1", "127.0.0.1"),
        ("k8s://https://nowhere.invalid:6443", socket.getfqdn()),
    ],
)
def test_executors_in_pods_reach_the_driver_by_its_address_and_others_by_its_name(master: str, host: str) -> None:
    assert spark_submit._own_host(master) == host

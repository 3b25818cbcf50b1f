"""`evenkeel submit`: what Spark's own script is given, and what an API server of Kubernetes is asked."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest
from pyspark import cloudpickle

from streaming.cluster import spark_submit, submit
from streaming.cluster.spark_submit import pack
from streaming.config import KafkaSettings, Settings
from streaming.demo.ports import free_port
from streaming.exceptions import SetupError
from streaming.job.operator import operator
from streaming.job.source.settings import SourceSettings
from streaming.process import GuardedProcess
from tests.short_lived import SHORT_LIVED

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


_PATIENCE_S = 300
_PASSWORD = "correct-horse-battery-staple"


class _Asked(BaseHTTPRequestHandler):
    """Creates nothing: it answers as if what is posted was there; lists are empty, and watches tell nothing."""

    pods: Queue[dict[str, Any]]
    ended: threading.Event

    def do_GET(self) -> None:
        kind = self.path.partition("?")[0].rpartition("/")[2]
        if "watch=true" in self.path:
            self._answer(200, b"")
            self.ended.wait(_PATIENCE_S)
        elif kind in {"pods", "configmaps", "services", "persistentvolumeclaims"}:
            found = {"kind": f"{kind[:-1].capitalize()}List", "apiVersion": "v1", "items": []}
            self._answer(200, json.dumps({**found, "metadata": {"resourceVersion": "1"}}).encode())
        else:
            self._answer(404, b'{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}')

    def do_POST(self) -> None:
        made = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if made["kind"] == "Pod":
            self.pods.put(made)
        made["metadata"] |= {"uid": made["metadata"]["name"], "resourceVersion": "1", "namespace": "default"}
        self._answer(201, json.dumps(made).encode())

    do_PUT = do_PATCH = do_POST  # noqa: N815 - their names there

    def do_DELETE(self) -> None:
        self._answer(200, b'{"kind": "Status", "apiVersion": "v1", "status": "Success"}')

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if body:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


@contextmanager
def _api_server() -> Iterator[tuple[str, Queue[dict[str, Any]]]]:
    _Asked.pods, _Asked.ended = Queue(), threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Asked) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"k8s://http://127.0.0.1:{server.server_port}", _Asked.pods
        _Asked.ended.set()
        server.shutdown()


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_executors_are_asked_for_as_pods_that_reach_the_driver_and_carry_no_secret(tmp_path: Path) -> None:
    output = tmp_path / "output"
    conf = {
        "spark.kubernetes.container.image": "evenkeel-spark:test",
        "spark.executor.instances": "2",
        "spark.executor.memory": "1g",
        "spark.driver.extraJavaOptions": " ".join(SHORT_LIVED),
        "spark.kubernetes.executor.secretKeyRef.EVENKEEL_KAFKA__SASL_PASSWORD": "kafka-login:password",
    }
    with _api_server() as (master, pods):
        # Without a broker: Spark asks for executors before the job knows that there is none.
        code = (
            "import sys; from streaming.cluster import submit; from streaming.config import load_settings; "
            f"submit(load_settings(), {master!r}, more=sys.argv[1:])"
        )
        submitted = GuardedProcess(
            [
                sys.executable,
                "-c",
                code,
                *(word for name, value in conf.items() for word in ("--conf", f"{name}={value}")),
            ],
            log=output,
            cwd=tmp_path,
            environment={
                "EVENKEEL_LAKE": str(tmp_path / "lake"),
                "EVENKEEL_KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{free_port()}",
                "EVENKEEL_KAFKA__SASL_PASSWORD": _PASSWORD,
            },
        )
        try:
            asked = [pods.get(timeout=_PATIENCE_S) for _ in range(2)]
        except Empty:
            pytest.fail(output.read_text("utf-8", "replace")[-5000:])
        finally:
            submitted.kill()
    for pod in asked:
        (container,) = pod["spec"]["containers"]
        variables = {one["name"]: one for one in container["env"]}
        assert container["image"] == "evenkeel-spark:test"
        assert container["args"] == ["executor"]
        assert variables["PYTHONSAFEPATH"]["value"] == "1"
        # The address that leads to the API server, here the loopback.
        assert "@127.0.0.1:" in variables["SPARK_DRIVER_URL"]["value"]
        secret = variables["EVENKEEL_KAFKA__SASL_PASSWORD"]["valueFrom"]["secretKeyRef"]
        assert (secret["name"], secret["key"]) == ("kafka-login", "password")
        assert _PASSWORD not in json.dumps(pod)

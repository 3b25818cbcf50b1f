"""The Helm chart: what it renders is valid, and its configuration is read as Evenkeel reads it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from streaming.cli import app
from streaming.config import Settings, load_fleet
from streaming.health import LIVE, READY
from streaming.places import cache_folder
from tests.deploy.rendered import (
    CHART,
    KUBERNETES,
    Manifest,
    environment_of,
    manifests_of,
    of_kind,
    pods_of,
    run_helm,
    settings_file,
    text_of,
)

pytestmark = [pytest.mark.nightly, pytest.mark.turn(5)]

_THREE: dict[str, Any] = {
    "clusters": [
        {
            "name": "orders",
            "settings": {
                "kafka": {
                    "bootstrap_servers": "orders:9092",
                    "security_protocol": "SASL_SSL",
                    "sasl_mechanism": "SCRAM-SHA-512",
                    "sasl_username": "evenkeel",
                    "client": {"receive_buffer_bytes": 65536},
                },
                "probe": {"interval_ms": 5000, "retention_ms": 259_200_000},
                "strategies": [{"groups": "/^pay-/", "strategy": "cooperative-sticky"}],
            },
            "secrets": {"kafka.sasl_password": {"name": "orders-login", "key": "password"}},
        },
        {"name": "EU_west", "settings": {"offsets_log": "admin", "kafka": {"bootstrap_servers": "eu:9092"}}},
        {
            "name": "rocket",
            "settings": {"rocketmq": "ns1:9876;ns2:9876", "bus": {"bootstrap_servers": "orders:9092"}},
        },
    ],
    "settings": {
        "maintenance": {"keep_days": {"lag": 20}},
        "owners": [{"team": "pay", "groups": ["/^pay'\"\\d/"]}],
        "serve": {"past_hours": 12.5},
        "alerts": {"routes": [{"severities": ["critical"], "targets": ["oncall"]}]},
    },
    "secretFiles": "evenkeel-files",
}

_CASES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "three clusters": _THREE,
    "an object store": {"lake": {"uri": "s3://bucket/lake", "credentials": "aws"}},
    "an object store for checkpoints too": {"lake": {"uri": "s3://bucket/lake", "checkpoints": "s3://bucket/state/"}},
    "a volume of many nodes": {"lake": {"volume": {"accessMode": "ReadWriteMany"}}, "server": {"replicas": 3}},
    "a claim that exists": {"lake": {"volume": {"existingClaim": "lake"}}},
    "everything around the page": {
        "settings": {"serve": {"path": "/monitoring/evenkeel/", "hosts": ["evenkeel.example.org"]}},
        "rules": "rules: []\n",
        "server": {
            "secrets": {
                "serve.token": {"name": "page", "key": "token"},
                "alerts.targets.ops": {"name": "page", "key": "ops"},
            },
            "secretFiles": "targets",
        },
        "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls"},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "networkPolicy": {
            "enabled": True,
            "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}],
            "egress": [{"ports": [{"port": 9092}]}],
        },
        "imagePullSecrets": [{"name": "registry"}],
        "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/evenkeel"}},
        "podAnnotations": {"team": "kafka"},
    },
}


@pytest.fixture(params=_CASES.values(), ids=_CASES.keys())
def values(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


def _selected(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return selector.items() <= labels.items()


def test_helm_finds_nothing_wrong(values: dict[str, Any]) -> None:
    done = run_helm("lint", values)
    assert done.returncode == 0, done.stdout


def test_manifests_fit_kubernetes_schemas(values: dict[str, Any], tmp_path: Path) -> None:
    validate = cache_folder() / "deploy-checks" / "bin" / "kubernetes-validate"
    if not validate.exists():
        pytest.skip("kubernetes-validate was not installed: python -m tests.programs helm")
    rendered = tmp_path / "rendered.yaml"
    rendered.write_text(text_of(values), encoding="utf-8")
    done = subprocess.run(
        [validate, "-k", KUBERNETES, "--strict", rendered], capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert said.count(" passed for resource ") == sum(
        one["kind"] != "ServiceMonitor" for one in yaml.safe_load_all(rendered.read_text("utf-8")) if one
    )


def test_each_pod_reads_the_clusters_from_file_andenvironment_of(
    values: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = manifests_of(values)
    path = settings_file(manifests, tmp_path)
    names = {one["name"] for one in values.get("clusters", [{"name": "default"}])}
    watched = set()
    for template in pods_of(manifests).values():
        with monkeypatch.context() as patch:
            for name, value in environment_of(template).items():
                patch.setenv(name, value)
            patch.setenv("EVENKEEL_CONFIG", str(path))
            fleet = load_fleet()
        found = {settings.cluster for settings in fleet}
        if template["metadata"]["labels"]["app.kubernetes.io/component"] == "probe":
            watched |= found
            assert len(found) == 1
        else:
            assert found == names
    assert watched == names


def test_settings_arrive_as_they_were_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = manifests_of(_THREE)
    monkeypatch.setenv("EVENKEEL_CONFIG", str(settings_file(manifests, tmp_path)))
    for name, value in environment_of(pods_of(manifests)["prod-evenkeel-job"]).items():
        if "SASL_PASSWORD" in name:
            monkeypatch.setenv(name, value)
    orders, europe, rocket = load_fleet()
    assert orders.kafka.bootstrap_servers == "orders:9092"
    assert orders.kafka.sasl_password.get_secret_value() == "json://somewhere"
    # A socket option takes no 65536.0.
    assert type(orders.kafka.client["receive_buffer_bytes"]) is int
    assert (orders.probe.interval_ms, orders.probe.retention_ms) == (5000, 259_200_000)
    assert orders.strategies[0].strategy == "cooperative-sticky"
    assert (europe.offsets_log, europe.kafka.sasl_password) == ("admin", None)
    assert rocket.rocketmq is not None
    assert rocket.bus is not None
    for settings in (orders, europe, rocket):
        assert settings.lake == "/var/lib/evenkeel/lake"
        assert settings.maintenance.keep_days == {"lag": 20}
        assert settings.owners[0].groups == ("/^pay'\"\\d/",)
        assert settings.serve.past_hours == 12.5


def test_selectors_find_the_pods_that_are_meant_and_no_others(values: dict[str, Any]) -> None:
    manifests = manifests_of(values)
    labels = {name: template["metadata"]["labels"] for name, template in pods_of(manifests).items()}
    for name, one in of_kind(manifests, "Deployment").items():
        selector = one["spec"]["selector"]["matchLabels"]
        assert [other for other in labels if _selected(selector, labels[other])] == [name]
    for name, one in of_kind(manifests, "PodDisruptionBudget").items():
        selector = one["spec"]["selector"]["matchLabels"]
        assert [other for other in labels if _selected(selector, labels[other])] == [name]
    (service,) = of_kind(manifests, "Service").values()
    assert [name for name in labels if _selected(service["spec"]["selector"], labels[name])] == ["prod-evenkeel-server"]
    for monitor in of_kind(manifests, "ServiceMonitor").values():
        assert _selected(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
        assert [one["port"] for one in monitor["spec"]["endpoints"]] == [service["spec"]["ports"][0]["name"]]
    for policy in of_kind(manifests, "NetworkPolicy").values():
        selector = policy["spec"]["podSelector"]["matchLabels"]
        reached = {name for name in labels if _selected(selector, labels[name])}
        assert reached == ({"prod-evenkeel-server"} if policy["spec"].get("ingress") else set(labels))


def test_pods_are_not_root_write_only_to_mounts_and_run_the_version_of_the_chart(values: dict[str, Any]) -> None:
    version = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"]
    for template in pods_of(manifests_of(values)).values():
        spec = template["spec"]
        (container,) = spec["containers"]
        assert container["image"] == f"evenkeel:{version}"
        assert spec["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert not spec["automountServiceAccountToken"]
        mounts = {one["name"] for one in container["volumeMounts"]}
        assert mounts == {one["name"] for one in spec["volumes"]}
        # The working folder of the image, and where libraries put temporary files.
        assert {one["mountPath"] for one in container["volumeMounts"] if not one.get("readOnly")} == {
            "/var/lib/evenkeel",
            "/tmp",
        }


def test_each_pod_runs_a_command_and_is_asked_for_its_health_where_it_answers(values: dict[str, Any]) -> None:
    commands = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    for template in pods_of(manifests_of(values)).values():
        (container,) = template["spec"]["containers"]
        assert set(container["args"]) <= commands
        (port,) = container["ports"]
        assert f"0.0.0.0:{port['containerPort']}" in environment_of(template).values()
        for probe, path in (("startupProbe", LIVE), ("livenessProbe", LIVE), ("readinessProbe", READY)):
            asked = container[probe]["httpGet"]
            assert (asked["path"], asked["port"]) == (path, port["name"])


def test_without_a_job_nothing_is_there_for_it() -> None:
    manifests = manifests_of({**_CASES["an object store"], "job": {"enabled": False}})
    assert set(pods_of(manifests)) == {"prod-evenkeel-probe-default", "prod-evenkeel-server"}
    assert of_kind(manifests, "PersistentVolumeClaim") == {}
    manifests = manifests_of({"job": {"enabled": False}})
    assert _claims(manifests) == {"prod-evenkeel-server": {"prod-evenkeel-lake"}}


def test_a_probe_has_the_secrets_of_its_cluster_alone_and_the_server_has_none_of_them() -> None:
    having = {
        name
        for name, template in pods_of(manifests_of(_THREE)).items()
        if "EVENKEEL_CLUSTERS__ORDERS__KAFKA__SASL_PASSWORD" in environment_of(template)
    }
    assert having == {"prod-evenkeel-job", "prod-evenkeel-probe-orders"}


def test_the_job_has_no_secret_of_rocketmq() -> None:
    secrets = {"rocketmq.secret_key": {"name": "s", "key": "k"}, "bus.sasl_password": {"name": "s", "key": "b"}}
    values = {"clusters": [{"name": "r", "settings": {"rocketmq": "ns:9876"}, "secrets": secrets}]}
    found = {
        name: {variable for variable in environment_of(one) if variable.startswith("EVENKEEL_CLUSTERS__R__")}
        for name, one in pods_of(manifests_of(values)).items()
    }
    bus, key = "EVENKEEL_CLUSTERS__R__BUS__SASL_PASSWORD", "EVENKEEL_CLUSTERS__R__ROCKETMQ__SECRET_KEY"
    assert found == {
        "prod-evenkeel-probe-r": {bus, key},
        "prod-evenkeel-job": {bus},
        "prod-evenkeel-server": set(),
    }


def test_a_change_of_one_cluster_replaces_its_probes_and_no_other_pod() -> None:
    before = pods_of(manifests_of(_THREE))
    changed = json.loads(json.dumps(_THREE))
    changed["clusters"][1]["settings"]["kafka"]["bootstrap_servers"] = "europe:9092"
    changed["clusters"].append({"name": "new", "settings": {}})
    # Probes read strategies again by themselves.
    changed["clusters"][0]["settings"]["strategies"] = []
    after = pods_of(manifests_of(changed))
    assert after.keys() - before.keys() == {"prod-evenkeel-probe-new"}
    assert {name for name in before if before[name] != after[name]} == {"prod-evenkeel-probe-eu-west"}


def test_job_and_server_share_a_node_exactly_where_one_node_mounts_their_volume() -> None:
    def bound(values: dict[str, Any]) -> set[str]:
        pods = pods_of(manifests_of(values))
        found = set()
        for name, template in pods.items():
            for term in (
                template["spec"]
                .get("affinity", {})
                .get("podAffinity", {})
                .get("requiredDuringSchedulingIgnoredDuringExecution", [])
            ):
                # The first pod has none to follow: Kubernetes schedules it because it matches its own rule.
                assert _selected(term["labelSelector"]["matchLabels"], template["metadata"]["labels"])
                found.add(name)
        return found

    assert bound({}) == {"prod-evenkeel-job", "prod-evenkeel-server"}
    rocket = {"clusters": [{"name": "rocket", "settings": {"rocketmq": "ns:9876"}}]}
    assert bound(rocket) == {"prod-evenkeel-job", "prod-evenkeel-server", "prod-evenkeel-probe-rocket"}
    assert bound(_CASES["a volume of many nodes"]) == set()
    assert bound(_CASES["an object store"]) == set()


def test_with_an_object_store_the_job_alone_has_a_volume_and_each_cluster_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = manifests_of({**_THREE, "lake": {"uri": "s3://bucket/lake"}})
    claims = _claims(manifests)
    assert claims == {"prod-evenkeel-job": {"prod-evenkeel-checkpoints"}}
    assert set(of_kind(manifests, "PersistentVolumeClaim")) == {"prod-evenkeel-checkpoints"}
    monkeypatch.setenv("EVENKEEL_CONFIG", str(settings_file(manifests, tmp_path)))
    assert [(settings.lake, settings.job.checkpoint) for settings in load_fleet()] == [
        ("s3://bucket/lake", f"/var/lib/evenkeel/checkpoints/{name}") for name in ("orders", "EU_west", "rocket")
    ]
    manifests = manifests_of({"lake": {"uri": "s3://bucket/lake", "checkpoints": "s3://bucket/state/"}})
    assert _claims(manifests) == {}
    settings_file(manifests, tmp_path)
    assert load_fleet()[0].job.checkpoint == "s3://bucket/state/default"


def _claims(manifests: list[Manifest]) -> dict[str, set[str]]:
    claims = {
        name: {one["persistentVolumeClaim"]["claimName"] for one in template["spec"]["volumes"] if len(one) > 1
               and "persistentVolumeClaim" in one}
        for name, template in pods_of(manifests).items()
    }  # fmt: skip
    return {name: found for name, found in claims.items() if found}


def test_a_probe_reaches_the_lake_where_its_bus_is_a_folder_there() -> None:
    values: dict[str, Any] = {
        "clusters": [
            {"name": "rocket", "settings": {"rocketmq": "ns:9876"}},
            {"name": "rocket-with-kafka", "settings": {"rocketmq": "ns:9876", "bus": {"bootstrap_servers": "k:9092"}}},
            {"name": "kafka", "settings": {}},
            {"name": "kafka-with-folder", "settings": {"bus": {"folder": "s3://bucket/bus"}}},
        ]
    }
    having = {"prod-evenkeel-probe-rocket", "prod-evenkeel-probe-kafka-with-folder"}
    assert _claims(manifests_of(values)).keys() - {"prod-evenkeel-job", "prod-evenkeel-server"} == having
    pods = pods_of(manifests_of({**values, "lake": {"uri": "s3://bucket/lake", "credentials": "aws"}}))
    assert {name for name, one in pods.items() if "envFrom" in one["spec"]["containers"][0]} == having | {
        "prod-evenkeel-job",
        "prod-evenkeel-server",
    }


def test_the_ingress_has_the_path_of_the_page() -> None:
    manifests = manifests_of(_CASES["everything around the page"])
    (ingress,) = of_kind(manifests, "Ingress").values()
    (path,) = ingress["spec"]["rules"][0]["http"]["paths"]
    assert (path["path"], path["pathType"]) == ("/monitoring/evenkeel", "Prefix")
    assert path["backend"]["service"]["name"] in of_kind(manifests, "Service")


def test_one_job_works_and_its_successor_starts_when_it_has_ended(values: dict[str, Any]) -> None:
    job = of_kind(manifests_of(values), "Deployment")["prod-evenkeel-job"]
    assert (job["spec"]["replicas"], job["spec"]["strategy"]) == (1, {"type": "Recreate"})


def _secrets(model: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all secrets of the settings."""
    for name, field in model.model_fields.items():
        kinds = [field.annotation, *getattr(field.annotation, "__args__", ())]
        for kind in kinds:
            if kind is SecretStr:
                yield (*path, name)
            elif hasattr(kind, "model_fields"):
                yield from _secrets(kind, (*path, name))


def test_a_secret_among_the_settings_is_refused() -> None:
    places = [path for path in _secrets(Settings) if path[0] != "rocketmq"]
    assert ("kafka", "sasl_password") in places
    assert ("serve", "token") in places
    for section, name in [*places, ("rocketmq", "secret_key"), ("alerts", "targets")]:
        given: dict[str, Any] = {section: {name: {"ops": "hidden"} if name == "targets" else "hidden"}}
        values: dict[str, Any] = {"settings": given}
        if section in {"kafka", "rocketmq"}:
            values = {"clusters": [{"name": "a", "settings": given}]}
        done = run_helm("template", values)
        assert done.returncode == 1, (section, name)
        assert "would be in a ConfigMap" in done.stderr
        assert "hidden" not in done.stderr


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"clusters": [{"name": "a.b"}, {"name": "A-b"}]}, "have one name in Kubernetes"),
        ({"clusters": []}, "minItems"),
        ({"settings": {"lake": "s3://bucket/lake"}}, "settings.lake has another place"),
        ({"lake": {"volume": {"accessMode": "ReadWriteOncePod"}}}, "accessMode"),
        ({"sever": {"replicas": 2}}, "sever"),
        ({"probe": {"replicas": 0}}, "probe"),
    ],
)
def test_what_cannot_be_meant_is_refused(values: dict[str, Any], why: str) -> None:
    done = run_helm("template", values)
    assert done.returncode == 1
    assert why in done.stderr

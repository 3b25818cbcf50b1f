"""What the Helm chart renders."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.places import cache_folder

CHART = Path(__file__).resolve().parents[2] / "conf" / "deploy" / "helm" / "evenkeel"
KUBERNETES = "1.37"

Manifest = dict[str, Any]


def run_helm(command: str, values: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run `helm lint` or `helm template` with values; skips the test where there is no Helm."""
    program = next(iter(sorted(cache_folder().glob("helm-v*"))), None)
    if program is None:
        pytest.skip("Helm was not built: python -m tests.programs helm")
    words = {
        "lint": ["lint", "--strict", CHART],
        "template": ["template", "prod", CHART, "--kube-version", KUBERNETES],
    }
    given = json.dumps(values)  # JSON is YAML
    return subprocess.run(
        [program, *words[command], "--values", "-"], input=given, capture_output=True, text=True, check=False
    )


@cache
def _rendered(values: str) -> str:
    done = run_helm("template", json.loads(values))
    assert done.returncode == 0, done.stderr
    return done.stdout


def text_of(values: Mapping[str, Any]) -> str:
    """All manifests of the release `prod`, as one text."""
    return _rendered(json.dumps(values))


def manifests_of(values: Mapping[str, Any]) -> list[Manifest]:
    """All manifests."""
    return [one for one in yaml.safe_load_all(text_of(values)) if one]


def of_kind(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    """The manifests of a kind, by their names."""
    return {one["metadata"]["name"]: one for one in manifests if one["kind"] == kind}


def pods_of(manifests: list[Manifest]) -> dict[str, Manifest]:
    """The pod templates of all Deployments, by their names."""
    return {name: one["spec"]["template"] for name, one in of_kind(manifests, "Deployment").items()}


def environment_of(template: Manifest) -> dict[str, str]:
    """Variables of a pod's container; what comes from elsewhere has a value too."""
    (container,) = template["spec"]["containers"]
    return {one["name"]: one.get("value", "json://somewhere") for one in container["env"]}


def settings_file(manifests: list[Manifest], folder: Path) -> Path:
    """Write the release's evenkeel.toml into a folder."""
    (config,) = of_kind(manifests, "ConfigMap").values()
    path = folder / "evenkeel.toml"
    path.write_text(config["data"]["evenkeel.toml"], encoding="utf-8")
    return path

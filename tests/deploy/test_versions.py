"""Chart, image and package have one version."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

_ROOT = Path(__file__).resolve().parents[2]


def test_chart_image_and_package_have_one_version() -> None:
    version = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    chart = yaml.safe_load((_ROOT / "conf/deploy/helm/evenkeel/Chart.yaml").read_text(encoding="utf-8"))
    values = yaml.safe_load((_ROOT / "conf/deploy/helm/evenkeel/values.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (version, version)
    # Empty: the chart takes its appVersion.
    assert values["image"]["tag"] == ""

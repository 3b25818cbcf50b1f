"""The worked example of docs/custom-strategies.md, run unchanged and found in both ways."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "custom-strategies.md").read_text("utf-8")
EVENKEEL = Path(sys.executable).with_name("evenkeel")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("way", ["entry point", "configuration"])
def test_the_example_answers_as_the_page_says(way: str, tmp_path: Path) -> None:
    [source] = blocks("python")
    entry_point, configuration = blocks("toml")
    package = tmp_path / "site" / "mycompany"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "by_weight.py").write_text(source)
    settings = tmp_path / "evenkeel.toml"
    settings.write_text(configuration if way == "configuration" else "")
    if way == "entry point":
        # pip's form of the table on the page.
        named = re.sub(r'\[project\.entry-points\."(.*)"\]', r"[\1]", entry_point).replace('"', "")
        about = tmp_path / "site" / "mycompany-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mycompany\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(named)
    asked = re.findall(r"^    \$ echo '(.*)' \| evenkeel assign\n    (.*)$", PAGE, re.MULTILINE)
    assert len(asked) == 2

    done = subprocess.run(
        [EVENKEEL, "assign"],
        input="".join(f"{line}\n" for line, _ in asked),
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site"), "EVENKEEL_CONFIG": str(settings)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )

    assert done.stdout.splitlines() == [answer for _, answer in asked]

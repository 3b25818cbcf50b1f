"""The image, as far as that goes without an engine that builds it: linted, and what it does is played.

The player installs the wheel, writes the archive of classes as the build does, and then runs the image's entry point,
with its environment, as a user who is not root, where nothing can be written but the image's volumes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from streaming.demo.ports import free_port
from streaming.jars import cache_folder, jars_of
from streaming.tables import LakeReader
from tests.deploy import dockerfile
from tests.deploy.contained import USER
from tests.started import Started

if TYPE_CHECKING:
    from tests.installed import Installed

pytest_plugins = ("tests.installed",)

_ROOT = Path(__file__).resolve().parents[2]

# The prefix of the installation, and the folder with the lake, as the Dockerfile names them.
_INSTALLED, _VOLUME = "/opt/evenkeel", "/var/lib/evenkeel"


def test_hadolint_finds_nothing() -> None:
    linted = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), "--no-color", dockerfile.DOCKERFILE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (linted.returncode, linted.stdout) == (0, "")


def test_its_user_is_a_number_other_than_root() -> None:
    [user] = dockerfile.of_image("USER")
    assert all(int(number) > 0 for number in user.split(":"))


def test_its_programs_need_no_shell() -> None:
    assert dockerfile.program("ENTRYPOINT") == [f"{_INSTALLED}/bin/evenkeel"]
    assert dockerfile.program("CMD") == ["up"]
    assert dockerfile.program("HEALTHCHECK")[0] == f"{_INSTALLED}/bin/python"


def test_nothing_that_is_secret_has_a_place_in_it() -> None:
    named = {one.text for one in dockerfile.instructions() if one.name in {"ARG", "ENV"}}
    assert not re.search("password|secret|token|key|targets", " ".join(named), re.IGNORECASE)


def test_what_the_build_copies_is_there_and_is_not_ignored() -> None:
    copied = {
        source
        for one in dockerfile.instructions()
        if one.name == "COPY" and "--from" not in one.text
        for source in one.text.split()[:-1]
    }
    assert {source for source in copied if not (_ROOT / source).exists()} == set()
    ignored = dockerfile.DOCKERFILE.with_name("Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert {source.split("/")[0] for source in copied} == {line[1:] for line in ignored if line.startswith("!")}


class _Container(Started):
    """The image's entry point, running with a volume."""

    def __init__(self, installed: Installed, cache: Path, volume: Path, port: int, *arguments: str) -> None:
        self._volume = volume
        self._places = {
            f"{_INSTALLED}/cache": str(cache),
            _INSTALLED: str(installed.bin.parent),
            _VOLUME: str(volume),
            "8090": str(port),
        }
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = {name: self._here(value) for name, value in dockerfile.environment().items()}
        environment["PATH"] = environment["PATH"].replace("$PATH", path)
        contained = [sys.executable, "-I", str(Path(__file__).with_name("contained.py"))]
        program = [self._here(one) for one in dockerfile.program("ENTRYPOINT")]
        command = [
            *("unshare", "--mount", "--uts", "--propagation", "private", *contained, str(volume)),
            *(str(installed.bin.parents[1]), *program, *arguments),
        ]
        super().__init__(command, volume.with_name("output"), environment | {"HOME": "/nonexistent"})

    def _here(self, text: str) -> str:
        for there, here in self._places.items():
            text = text.replace(there, here)
        return text

    def is_healthy(self) -> bool:
        """What the image's HEALTHCHECK says."""
        check = [self._here(one) for one in dockerfile.program("HEALTHCHECK")]
        return subprocess.run(check, capture_output=True, check=False).returncode == 0

    @property
    def said(self) -> str:
        """What it and its processes have said."""
        files = self._volume.glob("lake/_logs/*/*.log")
        return "\n".join([super().said, *(file.read_text("utf-8", "replace") for file in files)])


@pytest.fixture(scope="module")
def cache(installed: Installed) -> Path:
    """The image's cache, as the last step of the build fills it: the jars and the archive of classes."""
    installed.bin.parents[1].chmod(0o755)  # pytest's folders are for their owner alone
    folder = installed.bin.parents[1] / "cache"
    for jar in {*jars_of("spark"), *jars_of("s3a")}:
        there = jar.path_in(folder / "jars")
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(jar.path_in(cache_folder()), there)
    [step] = [one.text for one in dockerfile.instructions() if "streaming.job.class_archive" in one.text]
    for command in step.split("&&"):
        program, *arguments = command.split()
        assert program == f"{_INSTALLED}/bin/python"
        environment = installed.environment | {"EVENKEEL_CACHE": str(folder)}
        subprocess.run([installed.bin / "python", *arguments], cwd=folder, env=environment, check=True)
    return folder


def _commit(bootstrap: str, topic: str, group: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1}}, wait_for_metadata=True)
    admin.close()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    partitions = [TopicPartition(topic, number) for number in range(2)]
    consumer.assign(partitions)
    consumer.commit({partition: OffsetAndMetadata(0, "", -1) for partition in partitions})
    consumer.close()


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A new volume, which belongs to the image's user."""
    folder = tmp_path / "volume"
    folder.mkdir()
    os.chown(folder, int(USER), int(USER))
    return folder


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="only root on Linux may mount")
@pytest.mark.nightly
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("installed")
@pytest.mark.turn(1)
def test_a_user_without_rights_home_and_shell_gets_rows_where_only_the_volumes_can_be_written(
    installed: Installed, cache: Path, volume: Path, bootstrap: str, unique: str
) -> None:
    _commit(bootstrap, unique, f"{unique}-group")
    with _Container(installed, cache, volume, free_port(), "up", "--bootstrap", bootstrap) as container:
        reader = LakeReader(volume / "lake")
        groups = f"SELECT 1 FROM group_health WHERE group_id = '{unique}-group'"
        container.until((volume / "lake" / "group_health" / "_delta_log").is_dir)
        container.until(lambda: reader.refresh() or reader.rows(groups))
        container.until(container.is_healthy)
        processes = [psutil.Process(container.pid), *container.below()]
        assert {user for process in processes for user in process.uids()} == {int(USER)}
        archives = [one for process in processes for one in process.cmdline() if "SharedArchiveFile" in one]
        assert [Path(one.split("=")[1]).parents[1] for one in archives] == [cache]
        container.stop()
    assert not re.search("read-only file system|permission denied", container.said, re.IGNORECASE)

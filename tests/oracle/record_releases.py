"""Kafka's record classes of several releases (`RecordReleases.java`), in one JVM.

python tests/oracle/record_releases.py      # rewrites tests/offsets_log/data/releases.jsonl
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from streaming.jars import classpath
from tests.oracle.java_classes import java_command

NEWEST = "4.4.0"
# The releases of the set [records] in conf/jars.toml, and the broker's.
RELEASES = ("3.3.2", "3.7.2", "3.9.1", "4.0.1", "4.1.1", "4.2.0", "4.3.1", NEWEST)

# Early-access layouts with the same version number: (release, key type). The codec refuses them.
EARLY_ACCESS = frozenset(
    {("3.7.2", key_type) for key_type in (4, 5, 7, 8)} | {("3.9.1", 9), ("3.9.1", 11), ("4.0.1", 11), ("4.0.1", 15)}
)

SEED = 20_261_121
GOLDEN = Path(__file__).parents[1] / "offsets_log" / "data" / "releases.jsonl"

# The golden file has the first short ones of this many random records, for each release, type and version.
_GOLDEN_FROM = 6_000
_SHORT = 240

_RUNNER = Path(__file__).with_name("RecordReleases.java")
_TIMEOUT_S = 600


def layouts() -> list[dict[str, Any]]:
    """Every layout of a release's classes, one per message and version."""
    return list(_run("schemas"))


def random_records(seed: int, count: int, releases: Sequence[str] = RELEASES) -> Iterator[dict[str, Any]]:
    """Records with random fields according to the classes' own schemas, as the classes write and print them."""
    return _run("random", str(seed), str(count), releases=releases)


SHARE_RELEASES = ("4.1.1", "4.2.0", "4.3.1", NEWEST)


def share_layouts() -> list[dict[str, Any]]:
    """As `layouts`, of the records of `__share_group_state`."""
    return list(_run("schemas", releases=SHARE_RELEASES, coordinator="share"))


def random_share_records(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """As `random_records`, of `__share_group_state`."""
    return _run("random", str(seed), str(count), releases=SHARE_RELEASES, coordinator="share")


def _run(*arguments: str, releases: Sequence[str] = RELEASES, coordinator: str = "group") -> Iterator[dict[str, Any]]:
    broker = classpath("broker")
    clients = [path for path in broker if path.name.startswith(("kafka-clients-", "jackson-", "slf4j-api-"))]
    jars = {path.stem: str(path) for path in [*classpath("records"), *broker]}
    named = [
        f"{release}={os.pathsep.join(jars[name] for name in _jars_of(release, coordinator))}" for release in releases
    ]
    command = [*java_command(_RUNNER, clients, "512m"), *arguments, *named]
    run = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr.decode()[-4000:])
    for line in run.stdout.decode("utf-8").split("\n")[:-1]:
        yield json.loads(line)


def _jars_of(release: str, coordinator: str) -> list[str]:
    """Before 3.5 the record classes were in the broker's own jar, since then in the group coordinator's."""
    if release == "3.3.2":
        return [f"kafka_2.13-{release}"]
    return [f"kafka-{coordinator}-coordinator-{release}", *([f"kafka-clients-{release}"] if release == NEWEST else [])]


def golden(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The golden file's records, from random ones of `SEED`: three of each shape of the newest release, else one."""
    seen: Counter[tuple[str, int, int]] = Counter()
    kept = []
    for record in islice(records, _GOLDEN_FROM):
        name = (record["release"], record["key_type"], record["value_version"])
        short = len(record["hex_key"]) + len(record["hex_value"]) <= _SHORT
        if name[:2] not in EARLY_ACCESS and short and seen[name] < (3 if record["release"] == NEWEST else 1):
            seen[name] += 1
            kept.append(record)
    return kept


if __name__ == "__main__":
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in golden(random_records(SEED, _GOLDEN_FROM))]
    GOLDEN.write_text("".join(lines), encoding="utf-8")

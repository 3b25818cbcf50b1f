"""Users' own strategies in the job's real workers, with real groups that run them (docs/assignors.md).

The members' assignments are written out below; the job recomputes them with the example of the page, a function that a
package offers, and one that raises.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from pyspark.sql import SparkSession

from streaming.config import Filters, JobSettings, KafkaSettings, ProbeSettings, Settings
from streaming.config.settings import CustomStrategySettings
from streaming.demo.kafka_python_member import KafkaPythonMember
from streaming.demo.stage import Stage
from streaming.probe import Probe
from streaming.tables import LakeReader
from tests.e2e.conftest import run_to_the_end
from tests.real_groups.real_log import offsets_log, read_on

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("recorded"),
    pytest.mark.turn(3),
]

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "assignors.md"
_WEIGHTS = {"a": 2, "b": 1, "c": 1}

# Owners of the topic's eight partitions, by the present members.
_BY_WEIGHT = {"a": "aaaaaaaa", "ab": "aabaabaa", "abc": "aabcaabc"}
_FROM_THE_LAST = {"a": "aaaaaaaa", "ab": "babababa", "abc": "cbacbacb"}
GROUPS = {"by-weight": _BY_WEIGHT, "from-the-last": _FROM_THE_LAST, "raises": _FROM_THE_LAST}

_OF_A_PACKAGE = """
def deal(group, partition_racks):
    members = sorted((member.member_id for member in group.members), reverse=True)
    result = {member_id: {} for member_id in members}
    for topic, count in group.partitions_per_topic.items():
        for number, member_id in enumerate(members):
            result[member_id][topic] = range(number, count, len(members))
    return result


def raises(group, partition_racks):
    raise LookupError("no rule for today")
"""


class _Written(AbstractPartitionAssignor):  # type: ignore[misc]  # kafka-python is not typed
    """Assigns as written out above; a member's weight is in its user data."""

    name = ""
    version = 0

    def __init__(self, name: str, weight: int) -> None:
        self.name = name
        self._weight = str(weight).encode()

    def metadata(self, topics: Any) -> ConsumerProtocolSubscription:
        return ConsumerProtocolSubscription(self.version, list(topics), self._weight)

    def assign(self, _cluster: Any, members: Any) -> dict[str, ConsumerProtocolAssignment]:
        ids = {member.member_id[0]: member.member_id for member in members}
        topics = {topic for member in members for topic in member.metadata.topics}
        owners = GROUPS[self.name]["".join(sorted(ids))]
        given = {letter: [p for p in range(8) if owners[p] == letter] for letter in ids}
        return {
            ids[letter]: ConsumerProtocolAssignment(self.version, [(topic, given[letter]) for topic in topics], b"")
            for letter in ids
        }

    def on_assignment(self, assignment: Any, generation: int) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages, with the example of the page and a package that offers a strategy."""
    package = tmp_path / "site" / "mycompany"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    [example] = re.findall(r"```python\n(.*?)```", _PAGE.read_text("utf-8").split("\n## Your own\n")[1], re.DOTALL)
    (package / "by_weight.py").write_text(example)
    (package / "others.py").write_text(_OF_A_PACKAGE)
    about = tmp_path / "site" / "mycompany-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mycompany\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[evenkeel.assignors]\nfrom-the-last = mycompany.others:deal\n")
    return tmp_path / "site"


@pytest.mark.nightly
def test_real_groups_are_judged_by_the_users_own_strategies(
    bootstrap: str,
    unique: str,
    spark: SparkSession,
    site: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As for a job that is started with the folder in PYTHONPATH: for itself and the Python workers of its Spark.
    monkeypatch.syspath_prepend(site)
    monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", str(site))
    settings = Settings(
        cluster=unique,
        lake=str(tmp_path / "lake"),
        kafka=KafkaSettings(bootstrap_servers=bootstrap),
        filters=Filters(groups=(f"/^{unique}/",)),
        probe=ProbeSettings(
            interval_ms=1_000, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
        ),
        job=JobSettings(max_rounds=2, trigger_ms=0),
        custom_strategies=(
            CustomStrategySettings(name="by-weight", assignor="mycompany.by_weight:ByWeight"),
            CustomStrategySettings(name="raises", assignor="mycompany.others:raises"),
        ),
    )
    written = {f"{unique}-{name}": name for name in GROUPS}
    _grow_with_a_round_for_each_member(settings, written, tmp_path / "stage")

    run_to_the_end(spark, settings)

    said: dict[str, Counter[tuple[str, str | None, str | None]]] = {group: Counter() for group in written}
    decided = {group: set[int]() for group in written}
    rows = LakeReader(settings.lake).rows("SELECT * FROM drift WHERE verdict <> 'not_applicable'")
    for row in rows:
        assert row["strategy"] == written[row["group_id"]]
        said[row["group_id"]][row["verdict"], row["matching_library"], row["reason"]] += 1
        decided[row["group_id"]].add(row["round"])
    reason = "custom strategy 'raises' raised LookupError: no rule for today"
    for group, name in written.items():
        expected = ("unverified", None, reason) if name == "raises" else ("identical", "custom", None)
        assert set(said[group]) == {expected}, (name, said[group])
        assert len(decided[group]) >= 3, "the job went on, from round to round and from batch to batch"


def _grow_with_a_round_for_each_member(settings: Settings, groups: Mapping[str, str], folder: Path) -> None:
    """Add members to each group one by one; when all groups have one more, there is a round."""
    bootstrap = settings.kafka.bootstrap_servers
    topic = f"{settings.cluster}-orders"
    stage = Stage(bootstrap, folder)
    stage.admin.create_topics({topic: {"num_partitions": 8, "replication_factor": 1}}, wait_for_metadata=True)
    with closing(stage), offsets_log(bootstrap) as log, Probe(settings) as probe:
        probe.round()
        for size, letter in enumerate(_WEIGHTS, 1):
            for group, name in groups.items():
                assignors = (_Written(name, _WEIGHTS[letter]),)
                member = KafkaPythonMember(
                    stage, group, (topic,), letter, assignors=assignors, session_timeout_ms=30_000
                )
                stage.enter(member)
            _await(log, groups, size)
            probe.round()


def _await(log: KafkaConsumer, groups: Mapping[str, str], size: int) -> None:
    waiting = set(groups)
    for group, record in _records(log):
        if len(record.members) == size and all(member.assigned for member in record.members):
            waiting.discard(group)
        if not waiting:
            return


def _records(log: KafkaConsumer) -> Iterator[Any]:
    while True:
        yield from read_on(log)

"""Topics other than those read before: recreated ones on a real broker, with the real probe and a job without Spark;
and the messages of the job's process about a lost checkpoint, or one of another cluster.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from streaming.exceptions import SetupError
from streaming.job.run import checkpoint_of, run
from streaming.job.source import SourceSettings
from streaming.job.source.connection import kept_readers
from streaming.probe import Probe
from streaming.tables import LakeReader
from tests.e2e.conftest import Recorded, in_this_session
from tests.e2e.plain_job import PlainJob
from tests.e2e.recording import environment_of, settings_for
from tests.patience import unless_too_busy
from tests.probe.witness import Cluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900), pytest.mark.turn(5)]

_ROOT = Path(__file__).resolve().parents[2]


def test_a_probe_s_topics_that_are_created_again_are_taken_up_and_no_number_comes_twice(
    cluster: Cluster, tmp_path: Path
) -> None:
    unique = cluster.unique
    settings = Settings(
        cluster=unique,
        lake=str(tmp_path / "lake"),
        kafka=KafkaSettings(bootstrap_servers=cluster.bootstrap),
        filters=Filters(groups=(f"/^{unique}/",)),
        probe=ProbeSettings(
            interval_ms=200, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
        ),
    )
    topics = [settings.probe.events_topic, settings.probe.rounds_topic]
    group = cluster.commit("g", cluster.topic("orders", 1), [0])
    job = PlainJob(SourceSettings.of(settings), kept_readers)
    with Probe(settings) as probe:
        for _ in range(4):
            probe.round()
    job.run()
    before = [row.round for row in job.rows.rounds]
    assert before == [0, 2, 4, 6]

    cluster.admin.delete_topics(topics)
    with Probe(settings) as probe:
        for _ in range(6):
            probe.round()
    cluster.commit("g", f"{unique}-orders", [5])
    with Probe(settings) as probe:
        probe.round()
    # The client's metadata is some seconds old, as in a running job.
    kept_readers(SourceSettings.of(settings)).bus.partitions(settings.probe.rounds_topic)
    job.run()

    rounds = job.rows.rounds
    numbers = [row.round for row in rounds]
    assert numbers == sorted(set(numbers))
    # (At 12 is the mark that the second probe ended.)
    assert [row.opened_offset for row in rounds] == [0, 2, 4, 6, 0, 2, 4, 6, 8, 10, 13]
    assert all(row.round - row.opened_offset == 8 for row in rounds[4:])
    assert {(gap.kind, gap.topic, gap.from_offset) for gap in job.rows.gaps if gap.kind != "rounds"} >= {
        ("recreated", settings.probe.rounds_topic, 8)
    }
    newest = [row for row in job.rows.lag if row.group_id == group][-1]
    assert (newest.round, newest.committed_offset) == (numbers[-1], 5)


@pytest.mark.spark
@pytest.mark.xdist_group("recorded")
def test_a_lost_checkpoint_and_another_cluster_are_one_sentence_and_exit_code_2(
    recorded: Recorded, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(recorded.recording.bootstrap, tmp_path / "lake", max_rounds=60)
    environment = [f"{name}={value}" for name, value in environment_of(settings, tmp_path).items()]

    # A job's lake; the test is about how the next jobs begin.
    shutil.copytree(recorded.lake, settings.lake)
    rounds = LakeReader(settings.lake).rows("SELECT round, cluster_id FROM rounds")
    checkpoint = Path(checkpoint_of(settings))
    kept = shutil.move(checkpoint, tmp_path / "kept")

    command = ["env", *environment, sys.executable, "-m", "streaming.job", "--available-now"]
    lost = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert lost.returncode == 2
    assert lost.stderr.splitlines()[-1] == (
        f"The checkpoint {checkpoint} is lost: it is empty, but the table rebalance_churn in {settings.lake} holds "
        f"rows of the cluster {settings.cluster}, which a new one would write a second time. Restore the checkpoint, "
        "or run evenkeel run --rebuild-state once, which writes only what the tables do not have."
    )

    shutil.move(kept, checkpoint)
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    *head, offsets = newest.read_text("utf-8").splitlines()
    moved = json.loads(offsets)
    assert moved["cluster_id"] == rounds[0]["cluster_id"]
    newest.write_text("\n".join([*head, json.dumps(moved | {"cluster_id": "elsewhere"})]), encoding="utf-8")
    for check in (checkpoint / "offsets").glob(f".{newest.name}.crc"):
        check.unlink()

    # (The same error as above, so with the same exit code: this one needs Spark to be found.)
    in_this_session(spark, monkeypatch)
    with pytest.raises(SetupError) as other:
        unless_too_busy(lambda: run(settings, available_now=True))
    assert str(other.value).startswith("The brokers belong to the Kafka cluster ")
    assert "the checkpoint of 'recorded' to elsewhere: correct kafka.bootstrap_servers" in str(other.value)
    assert LakeReader(settings.lake).rows("SELECT round, cluster_id FROM rounds") == rounds

"""The check before the start: each problem is one sentence that names it. The manual's ACL lines are run unchanged."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer as LibrdkafkaConsumer
from confluent_kafka import TopicPartition as LibrdkafkaPartition
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ACLOperation, ACLResourcePatternType, ResourceType

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings, secret_variable
from streaming.demo.librdkafka_member import transactional_producer
from streaming.job.source.connection import kept_readers
from streaming.job.source.settings import SourceSettings
from streaming.probe import Probe, check, inspect, preflight
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.holds import HELD_ROUNDS
from streaming.probe.kafka.requests import Refused
from tests.java_tools import run_java
from tests.patience import until
from tests.probe.secured import PASSWORD, RIGHTS, Secured
from tests.probe.witness import Cluster

pytestmark = [pytest.mark.xdist_group("broker"), pytest.mark.turn(6)]


SECURITY = Path(__file__).resolve().parents[2] / "docs" / "security.md"


@pytest.mark.nightly
@pytest.mark.kafka
def test_the_lines_of_the_manual_are_enough_for_probe_and_job(secured: Secured) -> None:
    lines = re.findall(r"^    kafka-acls (.*)$", SECURITY.read_text("utf-8"), re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        arguments = shlex.split(line.replace("HOST:9092", secured.broker.bootstrap))
        run_java(["org.apache.kafka.tools.AclCommand", *arguments])
    secured.wait_until_granted(*RIGHTS)
    settings = secured.settings()
    assert check(settings) == []

    with Probe(settings) as probe:
        first, second = probe.round(), probe.round()
    with Probe(settings) as restarted:  # reads back
        restarted.round()
    assert (first.groups, first.written, second.groups) == (1, 1, 1)
    # Read the events like the job.
    consumer = KafkaConsumer(
        **settings.kafka.client_config(), group_id=None, enable_auto_commit=False, isolation_level="read_committed"
    )
    for topic, partition in (
        ("__consumer_offsets", next(n for n, end in enumerate(first.log) if end)),
        (settings.probe.rounds_topic, 0),
        (settings.probe.events_topic, int(next(iter(first.events)))),
    ):
        place = TopicPartition(topic, partition)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        until(lambda: consumer.poll(timeout_ms=200), told=topic)
    consumer.close()


@pytest.mark.kafka
def test_with_a_bus_rights_to_read_are_enough_on_the_watched_cluster(
    secured: Secured, bootstrap: str, unique: str
) -> None:
    secured.grant(*RIGHTS[:3])
    topics = {"rounds_topic": f"{unique}.rounds", "events_topic": f"{unique}.events"}
    settings = secured.settings(**topics).model_copy(update={"bus": KafkaSettings(bootstrap_servers=bootstrap)})
    assert check(settings) == []
    with Probe(settings) as probe:
        assert probe.round().groups == 1
    with Probe(settings) as restarted:  # reads back
        assert restarted.round().groups == 1
    assert not set(topics.values()) & set(secured.admin.list_topics())


@pytest.mark.kafka
def test_rights_on_the_two_topics_are_enough_on_a_bus(
    secured: Secured, bootstrap: str, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = {"rounds_topic": f"evenkeel.{unique}-rounds", "events_topic": f"evenkeel.{unique}-events"}
    login = secured.settings(Filters(groups=(f"/^{unique}/",)), **topics)
    settings = login.model_copy(update={"kafka": KafkaSettings(bootstrap_servers=bootstrap), "bus": login.kafka})
    secured.grant(*RIGHTS[4:])
    [problem] = check(settings)
    assert "the right Create on Topic 'evenkeel." in problem
    secured.grant(RIGHTS[3])
    assert check(settings) == []
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    cluster = Cluster(bootstrap, unique, admin)
    cluster.commit("g", cluster.topic(), [0])
    for _ in range(2):  # the second reads back
        with Probe(settings) as probe:
            assert probe.round().groups == 1
    assert not set(topics.values()) & set(admin.list_topics())
    admin.close()
    monkeypatch.setenv(secret_variable("sasl_password", "bus"), PASSWORD)
    reader = kept_readers(SourceSettings.of(settings))
    # Twice an opening record, a closing record, and the mark of the end.
    assert reader.bus.ends(topics["rounds_topic"]) == {0: 6}


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("missing", "named"),
    [
        (0, "the right Read on Topic '__consumer_offsets'"),
        (1, "the right Describe on Group '*'"),
        (2, "the right Describe on Topic '*'"),
        (3, "the right Create on Topic 'evenkeel.new-rounds'"),
        (4, "the right Read on Topic 'evenkeel.there-rounds'"),
        (5, "the right Write on Topic 'evenkeel.there-rounds'"),
    ],
)
def test_without_any_one_of_them_the_sentence_names_it(secured: Secured, missing: int, named: str) -> None:
    names = "new" if missing == 3 else "there"
    topics = {"rounds_topic": f"evenkeel.{names}-rounds", "events_topic": f"evenkeel.{names}-events"}
    if missing != 3 and topics["rounds_topic"] not in secured.admin.list_topics():
        config = {"message.timestamp.type": "LogAppendTime"}
        secured.admin.create_topics(
            {topic: {"num_partitions": 1, "replication_factor": 1, "configs": config} for topic in topics.values()},
            wait_for_metadata=True,
        )
    secured.grant(*(right for place, right in enumerate(RIGHTS) if place != missing))
    # With "auto" the log may be out of reach: see test_source.py.
    settings = secured.settings(**topics).model_copy(update={"offsets_log": "log"})
    problems = check(settings)
    assert [problem for problem in problems if named in problem] == problems[:1]
    # The same right for the second topic may follow, and nothing else.
    assert all(named.replace("rounds", "events") in problem for problem in problems[1:])


@pytest.mark.kafka
def test_rights_on_the_watched_names_only_are_enough(secured: Secured) -> None:
    literal = ACLResourcePatternType.LITERAL
    secured.grant(
        RIGHTS[0],
        (ACLOperation.DESCRIBE, ResourceType.GROUP, "billing", literal),
        (ACLOperation.DESCRIBE, ResourceType.TOPIC, "orders", literal),
        *RIGHTS[3:],
    )
    settings = secured.settings(Filters(groups=("billing",), topics=("orders",)))
    assert check(settings) == []
    assert any("Describe on Group 'payments'" in p for p in check(secured.settings(Filters(groups=("payments",)))))


@pytest.mark.kafka
def test_a_configuration_topic_of_connect_that_cannot_be_read_is_a_warning_and_no_problem(
    secured: Secured, unique: str
) -> None:
    secured.grant(*RIGHTS)
    there, absent = f"{unique}-configs", f"{unique}-absent"
    secured.admin.create_topics({there: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    settings = secured.settings().model_copy(update={"connect_config_topics": {"workers": there, "others": absent}})

    def said() -> list[tuple[str, str]]:
        return [(line.state, line.text) for line in inspect(settings) if "Connect" in line.what]

    [missing, unread] = said()
    assert missing[0] == unread[0] == "warn"
    assert f"There is no topic '{absent}': correct connect_config_topics" in missing[1]
    assert f"User 'evenkeel' lacks the right Read on Topic '{there}'" in unread[1]
    assert check(settings) == []
    secured.grant((ACLOperation.READ, ResourceType.TOPIC, there, ACLResourcePatternType.LITERAL))
    assert said()[1] == ("ok", "may be read")


@pytest.mark.kafka
def test_a_group_that_we_may_not_see_any_more_is_not_said_to_be_deleted(secured: Secured) -> None:
    secured.grant(*RIGHTS)
    settings = secured.settings(rounds_topic="evenkeel.hidden-rounds", events_topic="evenkeel.hidden-events")
    assert check(settings) == []
    with Probe(settings) as probe:
        assert probe.round().written == 1
        secured.revoke_all()
        secured.grant(*(right for right in RIGHTS if right[1] is not ResourceType.GROUP))
        assert any("Group" in problem for problem in check(settings))
        closed = probe.round()
    # It is still there, with the only thing known: its id. Neither a state nor a topic is invented.
    assert (closed.groups, closed.written) == (1, 1)


@pytest.mark.kafka
def test_a_wrong_password_is_said_in_one_sentence_without_it(secured: Secured) -> None:
    [problem] = check(secured.settings(password="wrong-one"))
    assert "the user 'evenkeel'" in str(problem)
    assert "wrong-one" not in str(problem)


@pytest.mark.kafka
def test_a_port_of_another_security_protocol_is_said_in_one_sentence(bootstrap: str) -> None:
    kafka = KafkaSettings(bootstrap_servers=bootstrap, security_protocol="SSL")
    [problem] = check(Settings(kafka=kafka))
    assert f"No Kafka broker lets this client in at {bootstrap} with SSL" in str(problem)


@pytest.mark.kafka
def test_nothing_is_missing_on_an_open_cluster_and_nothing_is_created(bootstrap: str, unique: str) -> None:
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=bootstrap),
        probe=ProbeSettings(rounds_topic=f"{unique}.rounds", events_topic=f"{unique}.events"),
    )
    assert check(settings) == []
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    assert not [topic for topic in admin.list_topics() if topic.startswith(unique)]
    admin.close()


@pytest.mark.parametrize(
    ("rights", "answer", "lacking"),
    [
        (None, Refused.FORBIDDEN, []),
        ({}, Refused.FORBIDDEN, []),
        ({"__share_group_state": set()}, Refused.FORBIDDEN, []),
        ({"__share_group_state": {ACLOperation.DESCRIBE}}, {}, ["Read"]),
        ({"__share_group_state": {ACLOperation.DESCRIBE}}, Refused.FORBIDDEN, ["Read", "DescribeConfigs"]),
        ({"__share_group_state": {ACLOperation.READ}}, {}, []),
    ],
)
def test_what_share_groups_need_is_looked_at_where_there_are_any(
    rights: object, answer: object, lacking: list[str]
) -> None:
    requests: Any = SimpleNamespace(
        rights=lambda *_: rights, share_settings=lambda groups, _: dict.fromkeys(groups, answer)
    )
    told = list(preflight._of_share_groups(requests, Settings(cluster="prod"), Deadline.after(1)))
    assert [line.text.split("right ")[1].split(" on")[0] for line in told] == lacking
    assert {line.state for line in told} <= {"warn"}


def test_a_name_that_does_not_resolve_is_said_in_one_sentence() -> None:
    [problem] = check(Settings(kafka=KafkaSettings(bootstrap_servers="kafka.invalid:9092")))
    assert str(problem).startswith("The Kafka cluster at kafka.invalid:9092 cannot be reached (")


def test_a_password_file_that_is_not_there_is_named(bootstrap: str, tmp_path: Path) -> None:
    kafka = KafkaSettings(
        bootstrap_servers=bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="evenkeel",
        sasl_password_file=tmp_path / "password",
    )
    [problem] = check(Settings(kafka=kafka))
    assert str(tmp_path / "password") in str(problem)


@pytest.fixture
def settling(secured: Secured) -> Iterator[None]:
    """A group whose commit is in an open transaction; it leaves nothing that other tests would see."""
    servers = {"bootstrap.servers": secured.broker.bootstrap}
    consumer = LibrdkafkaConsumer(servers | {"group.id": "settling"})
    producer = transactional_producer(servers | {"transactional.id": "settler"})
    producer.begin_transaction()
    offsets = [LibrdkafkaPartition("orders", 0, 1)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 60)
    yield
    producer.abort_transaction(60)
    consumer.close()
    secured.admin.delete_groups(["settling"])


@pytest.mark.kafka
@pytest.mark.usefixtures("settling")
def test_whose_transaction_holds_the_log_back_is_told_as_far_as_rights_go(secured: Secured) -> None:
    secured.grant(*RIGHTS)
    settings = secured.settings(rounds_topic="evenkeel.held-rounds", events_topic="evenkeel.held-events")
    assert check(settings) == []
    with Probe(settings) as probe:
        closed = [probe.round() for _ in range(HELD_ROUNDS + 1)][-1]
        assert closed.holds is not None
        [hold] = closed.holds
        listed = [t for of_broker in secured.admin.list_transactions().values() for t in of_broker]
        assert [(t.producer_id, t.transactional_id) for t in listed] == [(hold.producer_id, "settler")]
        assert hold.transactional_id is None
        secured.grant((ACLOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "*", ACLResourcePatternType.LITERAL))
        [hold] = probe.round().holds or ()
    assert hold.transactional_id == "settler"


@pytest.mark.kafka
@pytest.mark.parametrize("way", ["password", "token", "certificate"])
def test_the_check_the_probe_and_the_source_log_in_with_what_is_in_files(
    secured: Secured, tmp_path: Path, way: str
) -> None:
    secured.set_password("first")
    (tmp_path / "password").write_text("first\n")
    (tmp_path / "token").write_text(secured.tokens.token() + "\n")
    kafka = {
        "password": secured.by_password(tmp_path / "password"),
        "token": secured.by_token(sasl_oauth_token_file=tmp_path / "token"),
        "certificate": secured.by_certificate(secured.ca_file.parent),
    }[way]
    topics = {"rounds_topic": f"evenkeel.{way}-rounds", "events_topic": f"evenkeel.{way}-events"}
    settings = secured.settings(**topics).model_copy(update={"kafka": kafka})
    [refused] = [problem for problem in check(settings) if "Describe on Group" in problem]
    assert refused, "it is a user with rights of its own"
    secured.grant(*RIGHTS)
    assert check(settings) == []
    with Probe(settings) as probe:
        assert probe.round().groups == 1
    ends = kept_readers(SourceSettings.of(settings)).bus.ends(topics["rounds_topic"])
    assert list(ends.values()) == [3]


@pytest.mark.kafka
def test_a_token_that_the_broker_refuses_is_one_sentence_without_it(secured: Secured, tmp_path: Path) -> None:
    token = secured.tokens.token(seconds=-600)
    (tmp_path / "token").write_text(token)
    kafka = secured.by_token(sasl_oauth_token_file=tmp_path / "token")
    [problem] = check(secured.settings().model_copy(update={"kafka": kafka}))
    assert "No Kafka broker lets this client in" in problem
    assert "correct" in problem
    assert token.rpartition(".")[2] not in problem


# The connection settings for TLS, against a broker port with nothing else.


@pytest.fixture
def encrypted(secured_broker: Secured, unique: str) -> Settings:
    """Settings for a broker's TLS port, whose certificate only we trust."""
    return Settings(
        cluster="encrypted",
        kafka=KafkaSettings(
            bootstrap_servers=f"127.0.0.1:{secured_broker.tls_port}",
            security_protocol="SSL",
            ssl_cafile=secured_broker.ca_file,
        ),
        probe=ProbeSettings(
            interval_ms=500, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
        ),
    )


@pytest.mark.kafka
def test_probe_and_source_speak_tls_with_the_settings_of_one_place(encrypted: Settings) -> None:
    assert check(encrypted) == []
    with Probe(encrypted) as probe:
        closed = probe.round()
    reader = kept_readers(SourceSettings.of(encrypted), 30.0)
    assert reader.bus.ends("__consumer_offsets").keys() == set(range(len(closed.log)))


@pytest.mark.kafka
def test_a_certificate_that_is_not_trusted_is_one_sentence(encrypted: Settings) -> None:
    kafka = encrypted.kafka.model_copy(update={"ssl_cafile": None})
    problems = check(encrypted.model_copy(update={"kafka": kafka}))
    assert len(problems) == 1
    assert "certificate" in str(problems[0]).lower()
    assert "\n" not in str(problems[0])

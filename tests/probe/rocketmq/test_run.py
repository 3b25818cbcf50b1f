"""Rounds against a real RocketMQ cluster, written to a real Kafka."""

from __future__ import annotations

import pytest

from streaming.config import KafkaSettings, ProbeSettings, RocketMQSettings, Settings
from streaming.events import RocketMQGroupEvent, decode_event
from streaming.probe import check
from streaming.probe.deadline import AnotherProbeError
from streaming.probe.rocketmq.run import RocketMQProbe
from streaming.probe.standby.others import Identity
from streaming.records import RoundClosed, RoundOpened
from tests.probe.witness import asked_of_rocketmq, read_all, rounds_of
from tests.rocketmq import recipes
from tests.rocketmq.servers import EmbeddedRocketMQ

pytestmark = [pytest.mark.java, pytest.mark.kafka, pytest.mark.xdist_group("broker"), pytest.mark.turn(10)]


@pytest.fixture
def settings(bootstrap: str, rocketmq: EmbeddedRocketMQ, unique: str) -> Settings:
    return Settings(
        cluster=unique,
        rocketmq=RocketMQSettings(name_servers=rocketmq.addresses[0]),
        bus=KafkaSettings(bootstrap_servers=bootstrap),
        probe=ProbeSettings(
            events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", replication_factor=1, interval_ms=1_000
        ),
        filters={"groups": (f"/^{unique}/",)},  # type: ignore[arg-type]
    )


def events(bootstrap: str, topic: str) -> dict[int, list[RocketMQGroupEvent]]:
    found: dict[int, list[RocketMQGroupEvent]] = {}
    for record in read_all(bootstrap, topic):
        event = decode_event(record.value)
        assert isinstance(event, RocketMQGroupEvent), event
        found.setdefault(event.saw.round, []).append(event)
    return found


def test_a_round_has_an_event_per_group_and_a_closing_record_without_log_positions(
    settings: Settings, rocketmq: EmbeddedRocketMQ, bootstrap: str, unique: str
) -> None:
    assert check(settings) == []
    with rocketmq.commands() as commands:
        commands.create_topic(unique, 2)
    steady = recipes.steady(rocketmq.addresses[:1], unique, unique, count=2)
    with steady, RocketMQProbe(settings) as probe, asked_of_rocketmq() as requests:
        first, second = probe.round(), probe.round()
    assert (second.source, second.log, second.log_end, second.holds) == ("rocketmq", (), (), None)
    assert (second.groups, second.untold, second.written, second.cluster) == (1, 0, 1, unique)
    assert second.known_brokers == dict.fromkeys(rocketmq.brokers, 0)
    rounds = [record for _, record in rounds_of(settings)]
    assert [type(record) for record in rounds] == [RoundOpened, RoundClosed, RoundOpened, RoundClosed, RoundOpened]
    assert rounds[4].ends
    assert rounds[3] == second
    told = events(bootstrap, settings.probe.events_topic)
    assert sorted(told) == [first.round, second.round]
    [event] = told[second.round]
    assert (event.key, event.saw.time) == (unique, second.time)
    assert [member.answer for member in event.saw.members] == ["ok", "ok"]
    # It never joins: what it sends are questions.
    assert set(requests) <= {
        "GET_ALL_CONSUMER_OFFSET",
        "GET_ALL_SUBSCRIPTIONGROUP_CONFIG",
        "GET_ALL_TOPIC_LIST_FROM_NAMESERVER",
        "GET_BROKER_CLUSTER_INFO",
        "GET_CONSUMER_CONNECTION_LIST",
        "GET_CONSUMER_RUNNING_INFO",
        "GET_ROUTEINFO_BY_TOPIC",
        "GET_TOPIC_STATS_INFO",
    }


def test_a_group_that_was_deleted_while_no_probe_ran_is_told_as_gone(
    settings: Settings, rocketmq: EmbeddedRocketMQ, bootstrap: str, unique: str
) -> None:
    with rocketmq.commands() as commands:
        commands.create_topic(unique, 2)
        with recipes.steady(rocketmq.addresses[:1], unique, unique, count=1), RocketMQProbe(settings) as probe:
            probe.round()
        for name in rocketmq.brokers:
            commands.delete_group(unique, name)
    with RocketMQProbe(settings) as probe:
        last = probe.round()
    [event] = events(bootstrap, settings.probe.events_topic)[last.round]
    assert (event.saw.gone, event.saw.members, event.saw.topics) == ("deleted", (), ())


def test_a_second_probe_stands_by_and_takes_over_when_the_first_ends(
    settings: Settings, rocketmq: EmbeddedRocketMQ, unique: str
) -> None:
    with rocketmq.commands() as commands:
        commands.create_topic(unique, 2)
    with RocketMQProbe(settings, who=Identity("second", None)) as second:
        with RocketMQProbe(settings, who=Identity("first", None)) as first:
            one = first.round()
            with pytest.raises(AnotherProbeError, match="probe first makes the rounds"):
                second.round()
            two = first.round()
        second.stand_by()
        three = second.round()
    assert [closed.probe for closed in (one, two, three)] == ["first", "first", "second"]
    assert one.round < two.round < three.round


def test_what_must_be_mended_before_the_start_is_a_sentence(settings: Settings) -> None:
    nobody = settings.model_copy(update={"rocketmq": RocketMQSettings(name_servers="127.0.0.1:1")})
    [problem] = check(nobody)
    assert str(problem).startswith(
        "No name server of the RocketMQ cluster answers (127.0.0.1:1: connection refused): correct "
    )

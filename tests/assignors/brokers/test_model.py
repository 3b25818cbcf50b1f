"""Limits of a broker's group, and topic ids in Kafka's text form."""

from __future__ import annotations

import pytest

from assignors import BadGroup
from assignors.brokers import ServerGroup, ServerTopic
from assignors.brokers.model import uuid_of
from assignors.model import MAX_PARTITIONS

FIRST, SECOND = "AAECAwQFBgcICQoLDA0ODw", "EBESExQVFhcYGRobHB0eHw"


def test_topics_may_have_as_many_partitions_together_as_the_limit_and_not_one_more() -> None:
    group = ServerGroup((), {"t": ServerTopic(FIRST, MAX_PARTITIONS - 1), "u": ServerTopic(SECOND, 1)})
    assert group.counts == {FIRST: MAX_PARTITIONS - 1, SECOND: 1}
    with pytest.raises(BadGroup, match=f"{MAX_PARTITIONS + 1} partitions in total: the limit is"):
        ServerGroup((), {"t": ServerTopic(FIRST, MAX_PARTITIONS), "u": ServerTopic(SECOND, 1)})


@pytest.mark.parametrize("count", [-1, MAX_PARTITIONS + 1, True, 1.0])
def test_a_count_that_no_topic_can_have_is_refused(count: int) -> None:
    with pytest.raises(BadGroup, match="give 0 to"):
        ServerGroup((), {"t": ServerTopic(FIRST, count)})


def test_an_id_is_read_as_kafka_prints_it() -> None:
    found = uuid_of("AAECAwQFBgcICQoLDA0ODw")
    assert (found.most, found.least) == (0x0001020304050607, 0x08090A0B0C0D0E0F)
    assert uuid_of("AAECAwQFBgcICQoLDA0ODw==").text == found.text == "AAECAwQFBgcICQoLDA0ODw"


def test_the_halves_of_an_id_are_signed_as_java_s_longs() -> None:
    found = uuid_of("_____________________w")
    assert (found.most, found.least) == (-1, -1)


@pytest.mark.parametrize("text", ["", "AAECAwQFBgcICQoLDA0OD", "AAECAwQFBgcI!!!!CQoLDA0ODw", "AAECAwQFBgcICQoLDA0ODxA"])
def test_what_is_no_id_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BadGroup, match="is not a UUID: give 16 bytes in URL-safe base64"):
        uuid_of(text)

"""Limits of a broker's group."""

from __future__ import annotations

import pytest

from assignors import BadPartitionCount
from assignors.brokers import ServerGroup, ServerTopic
from assignors.model import MAX_PARTITIONS

FIRST, SECOND = "AAECAwQFBgcICQoLDA0ODw", "EBESExQVFhcYGRobHB0eHw"


def test_topics_may_have_as_many_partitions_together_as_the_limit_and_not_one_more() -> None:
    group = ServerGroup((), {"t": ServerTopic(FIRST, MAX_PARTITIONS - 1), "u": ServerTopic(SECOND, 1)})
    assert group.counts == {FIRST: MAX_PARTITIONS - 1, SECOND: 1}
    with pytest.raises(BadPartitionCount, match=f"{MAX_PARTITIONS + 1} partitions in total: the limit is"):
        ServerGroup((), {"t": ServerTopic(FIRST, MAX_PARTITIONS), "u": ServerTopic(SECOND, 1)})


@pytest.mark.parametrize("count", [-1, MAX_PARTITIONS + 1, True, 1.0])
def test_a_count_that_no_topic_can_have_is_refused(count: int) -> None:
    with pytest.raises(BadPartitionCount, match="give 0 to"):
        ServerGroup((), {"t": ServerTopic(FIRST, count)})

"""Committed offsets that were seen, as windows of commits.

An offset that has moved shows that there was at least one commit; how many, and when, it does not. An offset that has
not moved shows nothing: a group may commit the same one again. So lag is judged by the rounds in which offsets moved,
and a group that commits without moving looks like one that does not commit.
"""

from __future__ import annotations

from collections.abc import Iterator

from streaming.groups.state import GroupState
from streaming.records import CommitWindow, GroupObservation, SeenCommits


def windows_of(state: GroupState, observation: GroupObservation, seen: SeenCommits) -> Iterator[list[CommitWindow]]:
    """The windows that lead from the offsets that are known to those that were seen: deletions, then commits."""
    recreated = {
        topic.topic
        for topic in observation.topics
        if (known := state.topics.get(topic.topic)) is not None
        and known.topic_id is not None
        and topic.topic_id not in {None, known.topic_id}
    }
    gone: list[CommitWindow] = []
    moved: list[CommitWindow] = []
    for topic, offsets in seen.offsets.items():
        known_of = state.partitions.get(topic, {})
        for partition, offset in offsets:
            had = known_of[partition].committed if partition in known_of else -1
            if offset == had:
                continue
            # Offsets of a topic that was deleted are deleted, too; a lower one of its successor is no step back.
            if had >= 0 and (offset < 0 or topic in recreated):
                gone.append(window_seen(observation.round, topic, partition, -1))
            if offset >= 0:
                moved.append(window_seen(observation.round, topic, partition, offset))
    if seen.whole:
        for topic, known_of in state.partitions.items():
            left = {partition for partition, _ in seen.offsets.get(topic, ())}
            gone.extend(
                window_seen(observation.round, topic, partition, -1)
                for partition, known in known_of.items()
                if known.committed >= 0 and partition not in left
            )
    yield gone
    yield moved


def window_seen(number: int, topic: str, partition: int, offset: int) -> CommitWindow:
    """An offset that a round has seen for the first time, as a window of one commit.

    Args:
        number: Number of the round.
        topic: Topic.
        partition: Partition.
        offset: The committed offset; -1 where there is none any more.
    """
    is_gone = offset < 0
    return CommitWindow(
        topic=topic,
        partition=partition,
        commits=0 if is_gone else 1,
        tombstones=1 if is_gone else 0,
        first_offset=offset,
        first_commit_time=-1,
        first_record=number,
        offset=offset,
        leader_epoch=-1,
        last_commit_time=-1,
        last_record=number,
        deleted=is_gone,
        step_back=0,
    )

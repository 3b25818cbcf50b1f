"""Who subscribes to each topic, worked out once for all members that subscribe alike."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from assignors.server.uuid import Uuid

__all__ = ["subscribers_by_topic"]


def subscribers_by_topic(wanted: Sequence[tuple[Uuid, ...]]) -> dict[str, list[int]]:
    """Members of each topic by their places, ascending; topics with the same subscribers share one list.

    Args:
        wanted: Topics of each member, once each; equal ones as one object, as `ServerGroup.subscribed` gives them.
    """
    kinds: dict[int, tuple[tuple[Uuid, ...], list[int]]] = {}
    for number, topics in enumerate(wanted):
        kind = kinds.get(id(topics))
        if kind is None:
            kind = kinds[id(topics)] = topics, []
        kind[1].append(number)
    kinds_of: dict[str, list[int]] = {}
    for kind_id, (topics, _) in kinds.items():
        for topic in topics:
            kinds_of.setdefault(topic.text, []).append(kind_id)
    lists: dict[tuple[int, ...], list[int]] = {}
    result = {}
    for text, of_topic in kinds_of.items():
        key = tuple(of_topic)
        listed = lists.get(key)
        if listed is None:
            listed = lists[key] = sorted(chain.from_iterable(kinds[kind_id][1] for kind_id in key))
        result[text] = listed
    return result

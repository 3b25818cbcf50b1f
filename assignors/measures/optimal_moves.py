"""The fewest moves to a balanced assignment of different subscriptions, as a minimum-cost flow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from assignors.context import spend
from assignors.model import Group

# Limit for the cells of the topics-by-members matrix that all rounds together visit: about 0.3 s. A group that needs
# more gets no figure rather than a late one.
MOST_CELLS = 40_000_000

# Limit for the initial partitions, which are dealt one by one: about 0.2 s.
MOST_PARTITIONS = 50_000

# Limit for the matrix: a round needs about eight arrays of eight bytes a cell, 130 MB. A larger matrix would leave at
# most 20 rounds, too few for a start that is not even.
MOST_MATRIX = 2_000_000

# Cost of a round, in units of 200 ns here: NumPy's calls, its steps over the matrix, Python's over the members.
_CALLS = 400
_CELLS_A_UNIT = 25
_DEALT = 20

_Counts = NDArray[np.int64]
_FAR = np.int64(2**60)


def moves_by_min_cost_flow(group: Group, owned_before: Mapping[str, Mapping[str, int]], owned: int) -> int | None:
    """The fewest moves to an assignment whose members' counts are as even as the subscriptions allow.

    A flow of minimum cost from topics to members. Costs are first the sum over members of 1 + 2 + ... + count, which is
    smallest exactly when the assignment is balanced, then the partitions that do not stay. It starts from the present
    owners, with every other partition at its least loaded subscriber, and cancels cycles of negative cost (Bellman-Ford
    over the residual graph) until there is none, which proves the optimum.

    Args:
        group: The group after the change.
        owned_before: Number of partitions of each topic that each member had, by member id and topic: only members of
            the group, topics they still subscribe to, partitions that still exist.
        owned: Number of assignable partitions that had an owner, whether still in the group or not.

    Returns:
        Exact; None if it would exceed `MOST_CELLS`, `MOST_PARTITIONS` or `MOST_MATRIX`.

    Raises:
        TooMuchWork: It would exceed a limit of the caller.
    """
    counts = group.partitions_per_topic
    topics = sorted({topic for member in group.members for topic in member.topics if counts.get(topic)})
    if sum(counts[topic] for topic in topics) > MOST_PARTITIONS:
        return None
    if len(topics) * len(group.members) > MOST_MATRIX:
        return None
    row = {topic: index for index, topic in enumerate(topics)}
    may = np.zeros((len(topics), len(group.members)), dtype=bool)
    had = np.zeros(may.shape, dtype=np.int64)
    for column, member in enumerate(group.members):
        spend(len(member.topics))
        for topic in member.topics:
            if topic in row:
                may[row[topic], column] = True
        for topic, count in owned_before.get(member.member_id, {}).items():
            had[row[topic], column] = count
    has = had.copy()
    load = has.sum(axis=0)
    for index, topic in enumerate(topics):
        takers = np.flatnonzero(may[index])
        left = counts[topic] - int(has[index].sum())
        spend(left * (_DEALT + takers.size // _CELLS_A_UNIT))
        for _ in range(left):
            taker = takers[np.argmin(load[takers])]
            has[index, taker] += 1
            load[taker] += 1
    return _cancel(may, had, has, owned)


def _cancel(may: NDArray[np.bool_], had: _Counts, has: _Counts, owned: int) -> int | None:
    """Cancel negative cycles until none is left; `has` is changed in place."""
    left = MOST_CELLS // max(1, may.size)
    # One step in balance outweighs all moves together.
    step = np.int64(2 * has.sum() + 1)
    while True:
        cycle, rounds = _negative_cycle(may, had, has, step, left)
        left -= rounds
        if cycle:
            _shift(cycle, had, has)
        elif left <= 0:
            return None
        else:
            return owned - int(np.minimum(had, has).sum())


def _negative_cycle(
    may: NDArray[np.bool_], had: _Counts, has: _Counts, step: np.int64, most_rounds: int
) -> tuple[list[tuple[int, int, int]], int]:
    """Find a cycle of transfers that lowers the cost.

    Returns:
        Transfers (topic, from member, to member), and the number of rounds. No transfers if there is no such cycle, or
        if `most_rounds` are used up.
    """
    topics, members = may.shape
    load = has.sum(axis=0)
    # Taking a partition from a member costs one stay, unless it has more of the topic than before; giving it one
    # regains a stay, if it has fewer.
    take = np.where(has > 0, (has <= had).astype(np.int64), _FAR)
    give = np.where(may, -(has < had).astype(np.int64), _FAR)
    lose = np.where(load > 0, -step * load, _FAR)
    gain = step * (load + 1)
    at_topic = np.zeros(topics, dtype=np.int64)
    at_member = np.zeros(members, dtype=np.int64)
    at_sink = np.int64(0)
    from_member = np.full(topics, -1)
    from_topic = np.full(members, -2)  # -1: from the sink
    sink_from = -1
    for done in range(1, min(most_rounds, topics + members + 2) + 1):
        spend(_CALLS + may.size // _CELLS_A_UNIT + members)
        changed = False
        through = at_member + take
        best = through.argmin(axis=1)
        value = through[np.arange(topics), best]
        better = value < at_topic
        if better.any():
            changed = True
            at_topic = np.where(better, value, at_topic)
            from_member = np.where(better, best, from_member)
        offered = at_topic[:, None] + give
        best = offered.argmin(axis=0)
        value = offered[best, np.arange(members)]
        better = value < at_member
        if better.any():
            changed = True
            at_member = np.where(better, value, at_member)
            from_topic = np.where(better, best, from_topic)
        freed = at_sink + lose
        better = freed < at_member
        if better.any():
            changed = True
            at_member = np.where(better, freed, at_member)
            from_topic = np.where(better, -1, from_topic)
        filled = at_member + gain
        if filled.min() < at_sink:
            changed = True
            sink_from = int(filled.argmin())
            at_sink = filled[sink_from]
        if not changed:
            return [], done
        cycle = _cycle_of(from_member, from_topic, sink_from)
        if cycle:
            return cycle, done
    return [], most_rounds


def _cycle_of(
    from_member: NDArray[np.int64], from_topic: NDArray[np.int64], sink_from: int
) -> list[tuple[int, int, int]]:
    """A cycle among the predecessors as transfers, if there is one; each has negative cost."""
    seen: dict[int, int] = {}
    for start in (-1, *range(len(from_topic))):
        node, path = start, []
        while node not in seen:
            seen[node] = start
            path.append(node)
            if node == -1:  # the sink
                if sink_from < 0:
                    break
                node = sink_from
                continue
            topic = int(from_topic[node])
            if topic == -2:
                break
            if topic == -1:
                node = -1
                continue
            giver = int(from_member[topic])
            if giver < 0:
                break
            node = giver
        else:
            if seen[node] == start:
                ring = path[path.index(node) :]
                return [
                    (int(from_topic[member]), int(from_member[from_topic[member]]), member)
                    for member in ring
                    if member != -1 and from_topic[member] >= 0
                ]
    return []


def _shift(cycle: list[tuple[int, int, int]], had: _Counts, has: _Counts) -> None:
    """Apply the transfers of a cycle as many times as its cost stays negative."""
    load = has.sum(axis=0)
    amount = int(has.sum())
    change: dict[int, int] = {}
    for topic, giver, taker in cycle:
        surplus = int(has[topic, giver] - had[topic, giver])
        amount = min(amount, surplus if surplus > 0 else int(has[topic, giver]))
        lack = -int(has[topic, taker] - had[topic, taker])
        if lack > 0:
            amount = min(amount, lack)
        change[giver] = change.get(giver, 0) - 1
        change[taker] = change.get(taker, 0) + 1
    loses = [member for member, delta in change.items() if delta < 0]
    gains = [member for member, delta in change.items() if delta > 0]
    if loses:
        # Each transfer from a member with at least two more lowers the cost; with one more, only the first may.
        amount = max(1, min(amount, int(load[loses[0]] - load[gains[0]]) // 2))
    for topic, giver, taker in cycle:
        has[topic, giver] -= amount
        has[topic, taker] += amount

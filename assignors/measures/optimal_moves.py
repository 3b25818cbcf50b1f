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
    # regains a stay, if it has fewer. The last row is the sink, to which a member passes all its partitions: one more
    # than it has costs their number.
    take = np.vstack((np.where(has > 0, (has <= had).astype(np.int64), _FAR), step * (load + 1)))
    give = np.vstack((np.where(may, -(has < had).astype(np.int64), _FAR), np.where(load > 0, -step * load, _FAR)))
    at_row = np.zeros(topics + 1, dtype=np.int64)
    at_member = np.zeros(members, dtype=np.int64)
    from_member = np.full(topics + 1, -1)
    from_row = np.full(members, -1)
    for done in range(1, min(most_rounds, topics + members + 2) + 1):
        spend(_CALLS + may.size // _CELLS_A_UNIT + members)
        taken = at_member + take
        nearer = taken.min(axis=1) < at_row
        at_row = np.minimum(at_row, taken.min(axis=1))
        from_member = np.where(nearer, taken.argmin(axis=1), from_member)
        given = at_row[:, None] + give
        nearer_members = given.min(axis=0) < at_member
        at_member = np.minimum(at_member, given.min(axis=0))
        from_row = np.where(nearer_members, given.argmin(axis=0), from_row)
        if not nearer.any() and not nearer_members.any():
            return [], done
        cycle = _cycle_of(from_member.tolist(), from_row.tolist())
        if cycle:
            return cycle, done
    return [], most_rounds


def _cycle_of(from_member: list[int], from_row: list[int]) -> list[tuple[int, int, int]]:
    """A cycle among the predecessors as transfers, if there is one; each has negative cost."""
    sink = len(from_member) - 1
    seen: dict[int, int] = {}
    for start in range(len(from_row)):
        member, path = start, []
        while member >= 0 and member not in seen:
            seen[member] = start
            path.append(member)
            member = -1 if from_row[member] < 0 else from_member[from_row[member]]
        if member >= 0 and seen[member] == start:
            ring = path[path.index(member) :]
            return [(from_row[one], from_member[from_row[one]], one) for one in ring if from_row[one] != sink]
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

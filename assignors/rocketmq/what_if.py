"""What-if: the result of each of RocketMQ's strategies for one topic's queues and one group's clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from assignors.assignment import Assignment
from assignors.exceptions import AssignorError, CallWouldFail
from assignors.measures import Outcome, bounds_of, outcome
from assignors.model import Group, Subscription
from assignors.rocketmq.registry import allocate_all
from assignors.rocketmq.strategy import AllocateStrategy, MessageQueue, Queues

DealtQueues = tuple[dict[str, Queues | CallWouldFail | None], Outcome]
"""The result of `allocate_all`, and its outcome."""

# For the measures, which count partitions: every queue is a partition of one topic.
_ALL = "queues"


def what_if_in_rocketmq(
    strategies: Iterable[AllocateStrategy],
    queues: Sequence[MessageQueue],
    clients: Sequence[str],
    current: Mapping[str, Iterable[MessageQueue]],
    *,
    presort: bool = True,
    load: Sequence[float] | None = None,
) -> dict[str, DealtQueues | AssignorError]:
    """Compute each strategy's result for this group.

    A client whose call would throw keeps its queues, as in `RebalanceImpl`.

    Args:
        strategies: The strategies.
        queues: All queues of the topic.
        clients: All clients of the group.
        current: The current owners.
        presort: As for `allocate_all`.
        load: Load of each queue, in the order of `queues`.

    Returns:
        By the strategy's name, the result of `allocate_all` and the outcome, whose assignment has the indexes of queues
        as partitions of one topic; or the error that says why there is none.
    """
    position: dict[MessageQueue, int] = {}
    for queue in chain(queues, *current.values()):
        position.setdefault(queue, len(position))
    here = len(set(queues))

    def numbered(owned: Iterable[MessageQueue]) -> tuple[int, ...]:
        # (CONFIG may contain queues that do not exist: they are measured as additional ones.)
        return tuple(sorted({position.setdefault(queue, len(position)) for queue in owned}))

    now: Assignment = {client: {_ALL: numbered(owned)} for client, owned in current.items()}
    group = Group(tuple(Subscription(client, (_ALL,)) for client in dict.fromkeys(clients)), {_ALL: here})
    weights = None
    if load is not None:
        # (If a queue is listed twice, its last load counts.)
        of_queue = dict(zip(queues, load, strict=True))
        weights = {_ALL: [of_queue[queue] for queue in list(position)[:here]]}
    bounds = bounds_of(group, now)
    result: dict[str, DealtQueues | AssignorError] = {}
    for strategy in strategies:
        try:
            dealt = allocate_all(strategy, queues, clients, presort=presort)
        except AssignorError as error:
            result[strategy.name] = error
            continue
        after: Assignment = {
            client: now.get(client, {}) if isinstance(mine, CallWouldFail) else {_ALL: numbered(mine or ())}
            for client, mine in dealt.items()
        }
        result[strategy.name] = dealt, outcome(group, now, after, bounds, weights)
    return result

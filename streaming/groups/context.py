"""What each step of the core gets beside the group's state: settings, and limits on the work one group may cause.

Members, subscriptions and claimed partitions come from anyone with the right to join a group. Work that grows faster
than the size of their record is limited per decision, and per round for all decisions that wait for it. Beyond the
limit, rows say that the answer is unknown. The result does not depend on how the stream is split into batches: a round
is always judged as a whole.

The times given here were measured on the machine on which the limits were chosen: a unit took 0.3 to 0.8 us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from assignors import BadStrategy, CustomStrategies, CustomStrategy, at_most, custom_strategies
from assignors.rocketmq import MessageQueue
from streaming.exceptions import SetupError
from streaming.groups.rows import Rows, known
from streaming.records import LOG, GroupObservation
from streaming.times import day_of


@dataclass(frozen=True, slots=True)
class Incarnations:
    """Incarnations of groups that the tables know, for a state that was lost.

    Attributes:
        by_group: By group, each incarnation with the newest decision that the tables have of it.
    """

    by_group: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)

    def of(self, group: str, decision: int) -> int:
        """The incarnation that begins with a decision or, where the tables know it, that the decision belongs to."""
        return next((i for i, newest in self.by_group.get(group, ()) if i <= decision <= newest), decision)


@dataclass(frozen=True, slots=True)
class Allocation:
    """Parameters of RocketMQ's strategies, which clients do not report; None where they are not configured.

    Attributes:
        virtual_node_cnt: For CONSISTENT_HASH.
        message_queue_list: For CONFIG.
        consumeridcs: For MACHINE_ROOM.
        room_separator: For MACHINE_ROOM_NEARBY: the room is the text before it, in broker names and client ids.
        nearby_delegate: Name of the strategy that MACHINE_ROOM_NEARBY deals with.
    """

    virtual_node_cnt: int | None = None
    message_queue_list: tuple[MessageQueue, ...] | None = None
    consumeridcs: frozenset[str] | None = None
    room_separator: str | None = None
    nearby_delegate: str = "AVG"


def queue_list(queues: Iterable[tuple[str, str, int]]) -> tuple[MessageQueue, ...]:
    """The list of CONFIG, from topic, broker and queue id of each."""
    return tuple(MessageQueue(topic, broker, queue) for topic, broker, queue in queues)


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The core's settings, the same for every group of a cluster.

    Attributes:
        cluster: Configured name of the cluster.
        metadata_grace_ms: How long a leader may work with old metadata.
        heartbeat_ms: A row that has not changed is repeated after this time.
        watches_topic: Whether a topic passes the filters; rounds never show one that does not.
        custom: The user's own strategies.
        what_if_max_size: Largest decision, in partitions times members, for which other strategies are tried; 0 turns
            `what_if` off.
        incarnations: What is known of groups whose state was lost.
        allocation: Parameters of a RocketMQ group's strategies.
    """

    cluster: str
    metadata_grace_ms: int = 600_000
    heartbeat_ms: int = 600_000
    watches_topic: Callable[[str], bool] = lambda _: True
    custom: CustomStrategies = field(default_factory=CustomStrategies)
    what_if_max_size: int = 50_000
    incarnations: Incarnations = field(default_factory=Incarnations)
    allocation: Callable[[str], Allocation] = lambda _: Allocation()

    def repeated_after_ms(self, observation: GroupObservation) -> int:
        """How old the newest row of a group may be at a round, ms of elapsed time; an older one is repeated.

        A heartbeat, and half of one for an idle group: its rounds are up to a heartbeat apart.
        """
        if observation.idle:
            return self.heartbeat_ms // 2
        return self.heartbeat_ms


def custom_of(listed: Iterable[tuple[str, str, bool | None]]) -> CustomStrategies:
    """The user's own strategies: those listed as (name, assignor, deterministic), and those of installed packages.

    Raises:
        SetupError: A name is used twice or is the name of a built-in strategy, or a path cannot be imported.
    """
    try:
        configured = [CustomStrategy(name, assignor, deterministic) for name, assignor, deterministic in listed]
    except BadStrategy as error:
        message = f"The setting custom_strategies is wrong. {error}"
        raise SetupError(message) from None
    names = [custom.name for custom in configured]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        message = f"The setting custom_strategies is wrong: {twice!r} is listed twice. List each strategy once."
        raise SetupError(message)
    return custom_strategies(configured)


@dataclass(slots=True)
class Context:
    """One group in one call of `advance`.

    Attributes:
        group: Group id.
        config: The core's settings.
        rows: Rows are appended here.
        source: Where the group is read from: the column of that name.
        made: When a decision that was only seen was made: after and until which time, ms, as far as it is known.
    """

    group: str
    config: GroupConfig
    rows: Rows
    source: str = LOG
    made: tuple[int | None, int | None] = (None, None)

    def of_a_decision(
        self, decision: int, log_partition: int, record_time: int, incarnation: int, generation: int | None
    ) -> dict[str, Any]:
        """The columns that every row about a decision has; the arguments are those of its record."""
        return {
            "cluster": self.config.cluster,
            "group_id": self.group,
            "decision": decision,
            "source": self.source,
            "log_partition": known(log_partition),
            "record_time": record_time,
            "event_date": day_of(record_time),
            "incarnation": incarnation,
            "generation": generation,
        }

    @property
    def is_seen(self) -> bool:
        """Whether the group is only seen in rounds, and its log not read."""
        return self.source != LOG


DECISION: Final = 8_000_000
"""Limit for the verdict on one decision, and again for its `what_if` rows: 2 to 6 s.

A group of 1,000 members and 10,000 partitions took 2 million for all candidates. One of 2,000 members and 1,000,000
partitions took 1.5 million for the first candidate, which is usually the one that fits. With a lower limit, drift in
large groups would be missed; with a higher one, a single group could delay a round, and rounds come every 10 s."""

ROUND: Final = 12_000_000
"""Limit for the verdicts on all decisions of one group that wait for a round, the newest first, and again for their
`what_if` rows. Up to 64 decisions can wait (`verdicts.WAITING_MAX`)."""

RECORD: Final = 3_000_000
"""Limit for the columns that are computed as soon as a membership record arrives, `partitions_moved_optimal` and
`imbalance_optimal`: 0.7 s. The limits of `assignors.measures.optimal_moves` are about the same."""

NEWEST: Final = 8
"""How many of a group's decisions between two rounds get `what_if` rows, the newest ones. A rolling restart makes a
few; dozens are a rebalance storm, in which they all look alike."""

# A static member's return makes no decision and adds nothing to the waiting ones, so `of_record` cannot shrink its
# share by their number: it always gets a small one.
_OF_RETURN = 16


def of_decision() -> AbstractContextManager[object]:
    """Limit the work for one decision."""
    return at_most(DECISION, "one decision")


def of_round() -> AbstractContextManager[object]:
    """Limit the work for all decisions of a round together."""
    return at_most(ROUND, "all decisions of one round")


def of_record(waiting: int, *, decides: bool = True) -> AbstractContextManager[object]:
    """Limit the work for the row of one membership record.

    Args:
        waiting: Decisions already waiting for the next round. Each gets a smaller share than the one before, so all
            together need only a few times `RECORD`, without keeping count of the work done.
        decides: The record is a decision, not a static member's return.
    """
    return at_most(RECORD // (1 + waiting if decides else _OF_RETURN), "one record")

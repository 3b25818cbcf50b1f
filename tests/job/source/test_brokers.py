"""What a closing record says of brokers reaches the row of its round, and its moves the groups of the log partition."""

from __future__ import annotations

from streaming.events import Broker, Brokers, CoordinatorMove, encode_event
from streaming.groups import Rows
from streaming.groups.rows import RoundBroker
from streaming.job.source.observations import ObservationAssembler, event_rounds
from streaming.job.source.plan import TakenRound, plan_batch
from streaming.job.source.positions import Positions
from streaming.log_health import RoundsState, advance_rounds
from streaming.records import CoordinatorMove as Moved
from streaming.records import decode_closed_rounds, encode_closed_rounds
from tests.job.source.made_rounds import CLUSTER, FAR, at, closed
from tests.job.source.observations.made_events import LOG, group

TIME = closed(0, [1]).time

BROKERS = Brokers(
    (Broker(1, "kafka-1", "a"), Broker(3, "kafka-3", None, TIME), Broker(4, "kafka-4", "a", TIME - 50_000)),
    (Broker(2, "kafka-2", "b", TIME - 20_000),),
    ((1, 8), (3, 2)),
    (CoordinatorMove(0, 2, 1, 7, 8, TIME, gone_round=7), CoordinatorMove(1, 2, 3, 1, 2, TIME, back_since=TIME)),
)


def taken(brokers: Brokers | None) -> TakenRound:
    record = closed(0, list(LOG), {"0": (0, 9)}, brokers=brokers)
    (one,) = plan_batch(Positions(), [at(1, record)], FAR, CLUSTER).rounds
    return one


def row_of(brokers: Brokers | None) -> Rows:
    rounds = decode_closed_rounds(encode_closed_rounds([taken(brokers).summary]))
    return advance_rounds(RoundsState(), rounds, CLUSTER)[1]


def test_the_row_of_a_round_has_its_brokers_and_those_that_came_and_went() -> None:
    (row,) = row_of(BROKERS).rounds
    assert row.brokers == 3
    assert row.brokers_gone == (RoundBroker(2, "kafka-2", "b", TIME - 20_000),)
    assert row.brokers_joined == (RoundBroker(3, "kafka-3", None, TIME),)


def test_a_probe_that_does_not_report_brokers_leaves_their_columns_null() -> None:
    (row,) = row_of(None).rounds
    assert (row.brokers, row.brokers_gone, row.brokers_joined) == (None, None, None)


def test_each_group_gets_the_moves_and_the_epoch_of_its_own_log_partition() -> None:
    def observed(brokers: Brokers | None) -> list[tuple[int, tuple[Moved, ...], int]]:
        rounds = event_rounds([taken(brokers)], 0)
        made = ObservationAssembler("events", 0, rounds, 0, lambda _: True, lambda _: True)
        for offset, name in enumerate(("g", "h", "i", "j")):
            event = group(name, 0, number=0, time=TIME)
            made.add((offset, 0, b"key", encode_event(event)))
        made.finish()
        found = [one for of_group in made.take().values() for one in of_group]
        return [(one.log_partition, one.coordinator_moves, one.coordinator_epoch) for one in found]

    expected = {0: ((Moved(2, 1, 7, 8, gone_round=7),), 8), 1: ((Moved(2, 3, 1, 2, back_since=TIME),), 2)}
    told = observed(BROKERS)
    assert {partition for partition, _, _ in told} == {0, 1}
    assert all((moves, epoch) == expected[partition] for partition, moves, epoch in told)
    assert {(moves, epoch) for _, moves, epoch in observed(None)} == {((), -1)}

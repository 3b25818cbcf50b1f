"""What closing records say of brokers, in the core's words: columns of a round, moves of the groups' coordinators."""

from __future__ import annotations

from typing import TypedDict

from streaming.events import Broker, Brokers, RoundClosed
from streaming.records import CoordinatorMove, SeenBroker


class BrokerColumns(TypedDict):
    """The fields of a `ClosedRound` about brokers."""

    brokers: int | None
    brokers_gone: tuple[SeenBroker, ...] | None
    brokers_joined: tuple[SeenBroker, ...] | None


def broker_columns(closed: RoundClosed) -> BrokerColumns:
    """The brokers of a round; all None if it does not report them."""
    brokers = closed.brokers
    if brokers is None:
        return {"brokers": None, "brokers_gone": None, "brokers_joined": None}
    joined = [broker for broker in brokers.up if broker.since == closed.time]
    return {
        "brokers": len(brokers.up),
        "brokers_gone": tuple([_seen(broker, closed.time) for broker in brokers.gone]),
        "brokers_joined": tuple([_seen(broker, closed.time) for broker in joined]),
    }


def moves_of(brokers: Brokers | None) -> dict[int, tuple[CoordinatorMove, ...]]:
    """The moves of coordinators by partition of the offsets log; only partitions with moves."""
    found: dict[int, tuple[CoordinatorMove, ...]] = {}
    for move in brokers.moves if brokers is not None else ():
        told = CoordinatorMove(
            move.before, move.after, move.epoch_before, move.epoch_after, move.gone_round, move.back_since
        )
        found[move.partition] = (*found.get(move.partition, ()), told)
    return found


def epochs_of(brokers: Brokers | None) -> tuple[int, ...]:
    """Leader epoch per partition of the offsets log; empty when they are not known."""
    return () if brokers is None else tuple([epoch for _, epoch in brokers.coordinators])


def _seen(broker: Broker, time: int) -> SeenBroker:
    return SeenBroker(broker.node, broker.host, broker.rack, time if broker.since is None else broker.since)

"""Brokers from round to round: which are up, which have gone, and where coordinators moved.

Pure: the answer to one Metadata request and what the round before knew go in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from streaming.records import Broker, Brokers, CoordinatorMove

LONGEST_HOST: Final = 255
"""Characters of a host or a rack; longer ones are cut. (A host name has at most 253.)"""

MOVES_PER_PARTITION: Final = 3
"""Moves of a coordinator that a record reports: a broker that restarts makes two."""

GONE_MS: Final = 86_400_000
"""How long rounds report a broker that is gone: somebody who comes to work sees the outage of the night, and one that
was taken out for good is forgotten."""

MOVES_MS: Final = 3_600_000
"""How long rounds report a move of a coordinator: a group that decides later has other causes. It bounds the closing
records after the restart of a large cluster."""

STOPS_MS: Final = 60_000
"""A broker that shuts down hands its partitions to others first, and is gone some seconds later. One that is missing
this soon after it lost a partition has lost it by going."""

RETURNS_MS: Final = 600_000
"""A broker that is back gets its partitions back when the controller next looks for an imbalance: every 5 minutes by
default (`leader.imbalance.check.interval.seconds`)."""


OUTDATED_ROUNDS: Final = 6
"""A broker that answers with an older state of the cluster hears of the newer one within seconds. What stays older for
so many rounds is another log: somebody deleted it, or the whole cluster."""


class Host(NamedTuple):
    """Where a broker is: the host that it advertises, and its rack; None without one."""

    host: str
    rack: str | None


def is_outdated(before: Brokers | None, coordinators: Sequence[tuple[int, int]]) -> bool:
    """Whether the broker that answered has not heard yet of what another one answered the round before."""
    led = _led(before, coordinators)
    return any(epoch < known for (_, epoch), (_, known) in zip(coordinators, led, strict=False))


def brokers_after(
    before: Brokers | None,
    hosts: Mapping[int, Host],
    coordinators: Sequence[tuple[int, int]],
    number: int,
    time: int,
    last: int,
    outdated: int = 0,
) -> Brokers:
    """What a round knows of the brokers: what the one before knew, if its own answer is older.

    Args:
        before: What the closed round before knew; None if nothing.
        hosts: The brokers that are up, by node id.
        coordinators: Leader and leader epoch per partition of the offsets log; () where they are not known.
        number: Number of the round.
        time: Its time, ms.
        last: Time of the closed round before, ms; not used if nothing is known of it.
        outdated: How many rounds in a row before this one had an older answer; after `OUTDATED_ROUNDS` what was known
            is of another log, and counts no more.
    """
    if before is None or outdated >= OUTDATED_ROUNDS:
        return Brokers(tuple(_named(node, host, None) for node, host in sorted(hosts.items())), (), tuple(coordinators))
    led = _led(before, coordinators)
    recent = _recent(before.moves, time, last)
    if is_outdated(before, coordinators):
        return msgspec.structs.replace(before, moves=recent)
    known = {broker.node: broker for broker in before.up}
    up = {
        node: _named(node, host, known[node].since if node in known else time) for node, host in sorted(hosts.items())
    }
    gone = _still_gone(before.gone, time, last)
    gone |= {node: msgspec.structs.replace(broker, since=time) for node, broker in known.items()}
    moves = [_seen_gone(move, up, number, time) for move in recent]
    for partition, ((was, earlier), (now, later)) in enumerate(zip(led, coordinators, strict=False)):
        if earlier < later and was != now:
            move = CoordinatorMove(
                was,
                now,
                earlier,
                later,
                gone_round=None if was in up else number,
                # If the earlier leader went down, the return of the later one explains nothing.
                back_since=_back_since(up.get(now), time) if was in up else None,
                partition=partition,
                time=time,
            )
            moves.append(move)
    return Brokers(
        tuple(up.values()),
        tuple(broker for node, broker in sorted(gone.items()) if node not in up),
        tuple(coordinators),
        _newest(moves),
    )


def _led(before: Brokers | None, coordinators: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Leader and leader epoch per partition at the round before; () where they cannot be compared."""
    return before.coordinators if before is not None and len(before.coordinators) == len(coordinators) else ()


def _named(node: int, host: Host, since: int | None) -> Broker:
    rack = None if host.rack is None else host.rack[:LONGEST_HOST]
    return Broker(node, host.host[:LONGEST_HOST], rack, since)


# A clock that is wrong for one round changes nothing here: what it says counts when the round before says the same. A
# time that is later than both is of a clock that was ahead.
def _still_gone(gone: Sequence[Broker], time: int, last: int) -> dict[int, Broker]:
    """The brokers that have been gone for less than a day, by node id; gone since now at the latest."""
    earlier, later = sorted((last, time))
    return {
        broker.node: msgspec.structs.replace(broker, since=min(since, later))
        for broker in gone
        if earlier - (since := broker.since or 0) < GONE_MS
    }


def _recent(moves: Sequence[CoordinatorMove], time: int, last: int) -> tuple[CoordinatorMove, ...]:
    """The moves of the last hour; one whose age is not known is older than a broker that goes now could explain."""
    earlier, later = sorted((last, time))
    return tuple(
        move if move.time <= later else msgspec.structs.replace(move, time=later - STOPS_MS - 1)
        for move in moves
        if earlier - move.time < MOVES_MS
    )


def _seen_gone(move: CoordinatorMove, up: Mapping[int, Broker], number: int, time: int) -> CoordinatorMove:
    """The move, with this round as the one that misses its earlier leader."""
    is_explained = move.gone_round is not None or move.back_since is not None
    if is_explained or move.before in up or not 0 <= time - move.time <= STOPS_MS:
        return move
    return msgspec.structs.replace(move, gone_round=number)


def _back_since(broker: Broker | None, time: int) -> int | None:
    if broker is None or broker.since is None or not 0 <= time - broker.since <= RETURNS_MS:
        return None
    return broker.since


def _newest(moves: Sequence[CoordinatorMove]) -> tuple[CoordinatorMove, ...]:
    """The newest moves of each partition, in order."""
    kept: list[CoordinatorMove] = []
    counted: dict[int, int] = {}
    for move in reversed(moves):
        counted[move.partition] = counted.get(move.partition, 0) + 1
        if counted[move.partition] <= MOVES_PER_PARTITION:
            kept.append(move)
    return tuple(reversed(kept))

"""Brokers from round to round: which are up, and which have gone.

Pure: the answer to one Metadata request and what the round before knew go in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from streaming.records import Broker, Brokers

LONGEST_HOST: Final = 255
"""Characters of a host or a rack; longer ones are cut. (A host name has at most 253.)"""

GONE_MS: Final = 86_400_000
"""How long rounds report a broker that is gone: somebody who comes to work sees the outage of the night, and one that
was taken out for good is forgotten."""

OUTDATED_ROUNDS: Final = 6
"""A broker that answers with an older state of the cluster hears of the newer one within seconds. What stays older for
so many rounds is another log: somebody deleted it, or the whole cluster."""


class Host(NamedTuple):
    """Where a broker is: the host that it advertises, and its rack; None without one."""

    host: str
    rack: str | None


def is_outdated(before: Brokers | None, coordinators: Sequence[tuple[int, int]]) -> bool:
    """Whether the broker that answered has not heard yet of what another one answered the round before."""
    led = before.coordinators if before is not None else ()
    return len(led) == len(coordinators) and any(
        epoch < known for (_, epoch), (_, known) in zip(coordinators, led, strict=True)
    )


def brokers_after(
    before: Brokers | None,
    hosts: Mapping[int, Host],
    coordinators: Sequence[tuple[int, int]],
    time: int,
    last: int,
    outdated: int = 0,
) -> Brokers:
    """What a round knows of the brokers: what the one before knew, if its own answer is older.

    Args:
        before: What the closed round before knew; None if nothing.
        hosts: The brokers that are up, by node id.
        coordinators: Leader and leader epoch per partition of the offsets log; () where they are not known.
        time: The round's time, ms.
        last: Time of the closed round before, ms; not used if nothing is known of it.
        outdated: How many rounds in a row before this one had an older answer; after `OUTDATED_ROUNDS` what was known
            is of another log, and counts no more.
    """
    if before is None or outdated >= OUTDATED_ROUNDS:
        return Brokers(tuple(_named(node, host, None) for node, host in sorted(hosts.items())), (), tuple(coordinators))
    if is_outdated(before, coordinators):
        return before
    known = {broker.node: broker for broker in before.up}
    up = {
        node: _named(node, host, known[node].since if node in known else time) for node, host in sorted(hosts.items())
    }
    gone = _still_gone(before.gone, time, last)
    gone |= {node: msgspec.structs.replace(broker, since=time) for node, broker in known.items()}
    return Brokers(
        tuple(up.values()),
        tuple(broker for node, broker in sorted(gone.items()) if node not in up),
        tuple(coordinators),
    )


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

"""Other ways to assign: `cooperative` and `strategy`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from streaming.advice.period import Advice, Period, Tried

COOPERATIVE_LEAST: Final = 3
"""Eager rebalances that stopped unmoved partitions, from which on there is advice."""

STRATEGY_LEAST: Final = 5
"""Decisions at which two strategies are compared, from which on there is advice."""

COOPERATIVE: Final = "cooperative-sticky"
EAGER: Final = frozenset({"range", "roundrobin", "sticky"})
"""Strategies of Kafka's clients whose members stop reading for a rebalance."""

# (The same sums in another order differ by less.)
_NOTHING = 1e-9


def cooperative(period: Period) -> Advice | None:
    """What eager rebalances stopped for nothing."""
    eager = [one for one in period.rebalances if one.protocol == "eager" and one.stopped_unmoved]
    if len(eager) < COOPERATIVE_LEAST or period.strategy not in EAGER or period.protocol_type != "consumer":
        return None
    stopped = sum(one.stopped_unmoved or 0 for one in eager)
    # The lower bound covers all partitions that had an owner before and after, each for the same time: those that moved
    # and those that did not. (A static member that came back would belong to neither.)
    timed = [
        (one.unassigned_seconds, one.stopped_unmoved or 0, one.moved)
        for one in eager
        if one.unassigned_seconds is not None and one.moved is not None and not one.replaced
    ]
    seconds = round(sum(gone * unmoved / (unmoved + moved) for gone, unmoved, moved in timed), 3)
    return Advice(
        "cooperative",
        len(eager),
        f"Change `partition.assignment.strategy` from {period.strategy} to {COOPERATIVE}.",
        f"{len(eager)} eager rebalances stopped {stopped} partitions that kept their owner. They stood still for at "
        f"least {seconds:g} partition-seconds (lower bounds of {len(timed)} of the {len(eager)} rebalances, by the "
        "share of unmoved partitions): cooperative members would have gone on reading them.",
        f"Two rolling restarts: one with {COOPERATIVE} beside {period.strategy}, one without {period.strategy} "
        "(KIP-429). Java has it since 2.4, librdkafka since 1.6. A rebalance that moves partitions then takes two "
        "generations.",
        seconds,
        "partition-seconds",
        (("strategy", COOPERATIVE), ("rebalances", str(len(eager))), ("partitions_stopped_unmoved", str(stopped))),
    )


def strategy(period: Period, only: str | None = None) -> Advice | None:
    """Another strategy of the same library that would have moved less and balanced no worse, or the other way.

    Args:
        period: The group.
        only: The one strategy that may be named; None for any.
    """
    runs = {one.decision: one for one in period.tried if one.runs and one.strategy == period.strategy}
    if len(runs) < STRATEGY_LEAST:
        return None
    others: dict[str, dict[int, Tried]] = defaultdict(dict)
    for one in period.tried:
        ours = runs.get(one.decision)
        if ours is not None and not one.runs and one.client == ours.client != "" and only in (None, one.strategy):
            others[one.strategy][one.decision] = one
    # (Cooperative members do not go back to stopping everything.)
    may = [
        name for name, of in others.items()
        if of.keys() == runs.keys() and not (period.strategy == COOPERATIVE and name in EAGER)
    ]  # fmt: skip
    better = [(gain, name) for name in may if (gain := _gain(runs, others[name])) is not None]
    if not better:
        return None
    (moves, imbalance), name = max(better, key=lambda found: (*found[0], found[1] == COOPERATIVE, found[1]))
    ours_moved = sum(one.moved for one in runs.values())
    ours_mean = _mean(one.imbalance for one in runs.values())
    theirs_mean = _mean(one.imbalance for one in others[name].values())
    count = len(runs)
    return Advice(
        "strategy",
        count,
        f"Change the strategy from {period.strategy} to {name}.",
        f"At {count} decisions {name} would have moved {ours_moved - moves} partitions where {period.strategy} moved "
        f"{ours_moved}, with a mean imbalance of {theirs_mean:.3f} instead of {ours_mean:.3f}; at none of them would "
        f"it have {'balanced worse' if moves > 0 else 'moved more'}. Each is compared from the owners that the group "
        "really had before.",
        "A rolling restart with both strategies and one without the old one, unless the broker assigns (KIP-848: one "
        "member's request is enough where most ask for it).",
        float(moves) if moves > 0 else round(imbalance, 6),
        "partitions moved" if moves > 0 else "mean imbalance",
        (
            ("strategy", name), ("decisions", str(count)), ("partitions_moved", str(ours_moved)),
            ("partitions_moved_other", str(ours_moved - moves)), ("imbalance", f"{ours_mean:.6f}"),
            ("imbalance_other", f"{theirs_mean:.6f}"),
        ),
    )  # fmt: skip


def _gain(ours: Mapping[int, Tried], theirs: Mapping[int, Tried]) -> tuple[int, float] | None:
    """By how many moves and how much mean imbalance the other is better; None unless it is, and nowhere worse."""
    pairs = [(one, theirs[decision]) for decision, one in ours.items()]
    moves = sum(one.moved - other.moved for one, other in pairs)
    imbalance = _mean(one.imbalance - other.imbalance for one, other in pairs)
    balances = all(other.imbalance <= one.imbalance + _NOTHING for one, other in pairs)
    stays = all(other.moved <= one.moved for one, other in pairs)
    if (moves > 0 and balances) or (imbalance > _NOTHING and stays):
        return moves, imbalance
    return None


def _mean(values: Iterable[float]) -> float:
    given = list(values)
    return sum(given) / len(given)

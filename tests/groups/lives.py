"""Lives of a consumer on one partition, second by second: produced records, commits, rounds.

The core contributes only its input types: a life is three plain things, the seconds with a round, the seconds at which
the consumer commits everything that was produced (or a part of it), and the rate at which others produce.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from streaming.groups import advance
from streaming.groups.state import GroupState
from streaming.records import GroupInput
from tests.groups.build import CONFIG, GROUP, SECOND, START, make_commit, make_observation, make_topic

__all__ = ["DAY", "HOUR", "INTERVAL", "MINUTE", "Life", "first", "statuses"]

INTERVAL = 10
MINUTE = 60
HOUR = 3_600
DAY = 86_400

Spans = tuple[tuple[int, int], ...]


@dataclass
class Life:
    """The events, in seconds from the beginning.

    Attributes:
        ends: Second of the last round.
        commits: Second of each commit, and the share of the lag that it leaves.
        quiet: Spans without production.
        unseen: Spans without rounds.
        blind: Spans whose rounds do not know the partition's end.
        rate: Records per second.
        interval: Seconds between two rounds.
        rest: Second from which the rounds show the group as idle, once in ten minutes.
    """

    ends: int
    commits: list[tuple[int, float]] = field(default_factory=list)
    quiet: Spans = ()
    unseen: Spans = ()
    blind: Spans = ()
    rate: float = 3.0
    interval: int = INTERVAL
    rest: int | None = None

    def commit(self, at: Iterable[int], leaves: Callable[[int], float] = lambda _: 0.0) -> None:
        """Let the consumer commit at these seconds."""
        self.commits.extend((second, leaves(second)) for second in at)

    def dies(self) -> int:
        """Second of the last commit."""
        return max(second for second, _ in self.commits)


_newest: tuple[str, list[tuple[int, str]]] = ("", [])


def statuses(life: Life) -> list[tuple[int, str]]:
    """The core's status of the partition at each round; cached, because tests ask for the same life several times."""
    global _newest  # noqa: PLW0603  (lives of weeks take seconds)
    if _newest[0] != repr(life):
        _newest = (repr(life), list(_lived(life)))
    return _newest[1]


def _lived(life: Life) -> Iterator[tuple[int, str]]:
    state: GroupState | None = None
    commits = sorted(life.commits)
    produced, committed, record, at, elapsed, before = 0.0, 0, 0, 0, 0, 0
    status = "ok"
    for second in _rounds(life):
        inputs: list[GroupInput] = []
        while at < len(commits) and commits[at][0] <= second:
            when, leaves = commits[at]
            end = produced + _produced(life, before or 0, when)
            committed = max(committed, int(end - leaves * (end - committed)))
            record += 1
            inputs.append(make_commit(record, committed, topic="x", time=START + when * SECOND))
            at += 1
        produced += _produced(life, before, second)
        resting = life.rest is not None and second >= life.rest
        # Rounds continue while a group is idle, but do not show it.
        elapsed += second - before if resting else min(second - before, 3 * life.interval)
        before = second
        record += 1
        topic = make_topic("x", 1, end=-1 if _in(second, life.blind) else int(produced))
        observation = make_observation(
            record,
            topic,
            time=START + second * SECOND,
            elapsed=elapsed * SECOND,
            idle=resting,
            state="Empty" if resting else "Stable",
        )
        state, rows = advance(state, GROUP, [*inputs, observation], CONFIG)
        if rows.lag:
            status = rows.lag[-1].lag_status
        yield second, status


def first(life: Life, status: str, since: int) -> int:
    """Seconds from the last commit to the first round with the status; it must then hold until the end."""
    seen = [(second, told) for second, told in statuses(life) if second > since]
    begins = next((second for second, told in seen if told == status), None)
    assert begins is not None, f"never {status}: {sorted({told for _, told in seen})}"
    assert {told for second, told in seen if second >= begins} == {status}
    return begins - since


def _rounds(life: Life) -> Iterator[int]:
    second = life.interval
    while second <= life.ends:
        if not _in(second, life.unseen):
            yield second
        second += 10 * MINUTE if life.rest is not None and second >= life.rest else life.interval


def _produced(life: Life, since: int, until: int) -> float:
    quiet = sum(max(0, min(until, end) - max(since, begin)) for begin, end in life.quiet)
    return max(0, until - since - quiet) * life.rate


def _in(second: int, spans: Spans) -> bool:
    return any(begin <= second < end for begin, end in spans)

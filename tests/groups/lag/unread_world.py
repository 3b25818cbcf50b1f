"""A topic whose records have a known time of arrival, a group that reads it, and the rounds that watch both.

Time is in ms. A round sees the world as it was at a random moment between its opening and its closing record, as a real
probe does.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from streaming.groups.rows import LagRow
from streaming.probe.idle import Reporting, Rest, reporting, rest_after, rested
from streaming.records import GroupObservation
from tests.groups.build import GROUP, START, Life, make_commit, make_observation, make_topic, packed

INTERVAL = 10_000
PERIOD = 600_000
DAY = 86_400_000


@dataclass
class World:
    """One partition and one group.

    Attributes:
        arrived: When each record became readable.
        start: Log start.
        committed: Committed offset.
        now: Present time.
        has_members: Groups without members are reported rarely while nothing changes.
    """

    draw: random.Random
    arrived: list[int] = field(default_factory=list)
    start: int = 0
    committed: int = 0
    now: int = START
    has_members: bool = True
    rate: float = 1.0

    def live(self, until: int) -> None:
        """Let time pass: records arrive."""
        count = round(self.rate * (until - self.now) / 1_000 * self.draw.uniform(0.5, 1.5))
        count = min(count, 2_000)
        self.arrived += sorted(self.draw.randint(self.now + 1, until) for _ in range(count if until > self.now else 0))
        self.now = until

    def end(self, at: int) -> int:
        return bisect_right(self.arrived, at)


@dataclass(frozen=True)
class Evaluation:
    """The current row of the partition after a round, and the truth about it.

    Attributes:
        row: The newest row.
        truth: When the oldest unread record of the round became readable.
        now: The round's true opening time.
    """

    row: LagRow
    truth: int
    now: int


class Watched:
    """Runs rounds over a world, and gives the evaluation of each."""

    def __init__(self, world: World) -> None:
        self.world, self.life = world, Life()
        self.record = self.number = self.elapsed = 0
        self.before = -1
        self.opened_before = world.now
        self.rest = Rest()

    def round(
        self, *, wrong_by: int = 0, unknown: bool = False, held: bool = False, commit: int | None = None
    ) -> Evaluation | None:
        """One round; None if the group has no row yet, or the row shows no lag.

        Args:
            wrong_by: What the broker's clock adds to the round's times.
            unknown: The high watermark could not be read.
            held: The offsets log is blocked: what the group commits from now on is not known.
            commit: Commit this offset before the round; None commits nothing.
        """
        world, draw = self.world, self.world.draw
        opened = world.now
        if commit is not None:
            self.record += 1
            world.committed = commit
            self.life.take(make_commit(self.record, commit, topic="x"))
        took = draw.choice((20, 400, 3_000))
        asked = opened + draw.randint(1, took - 1)
        world.live(asked)
        end, start = len(world.arrived), min(world.start, len(world.arrived))
        truth = max(world.committed, start)
        world.live(opened + took)
        time = opened + wrong_by
        self.elapsed += 0 if self.before < 0 else max(0, min(time - self.before, 3 * INTERVAL))
        self.before = time
        self.number += 2
        seen = (end if not unknown else -1, start, world.committed, held)
        now = rest_after(self.rest, {} if world.has_members else {GROUP: hash(seen)}, time)
        reported = reporting(GROUP, self.rest, now, PERIOD)
        stretch = None if reported is Reporting.AS_IDLE else rested(GROUP, self.rest)
        self.rest = now
        self.opened_before = opened
        if reported is not Reporting.NOT_AT_ALL:
            self.life.take(self._observation(time, took, seen, stretch, idle=reported is Reporting.AS_IDLE, held=held))
        if not self.life.rows.lag or held or unknown or truth >= end:
            return None
        return Evaluation(self.life.rows.lag[-1], world.arrived[truth], opened)

    def _observation(
        self,
        time: int,
        took: int,
        seen: tuple[int, int, int, bool],
        stretch: tuple[int, int] | None,
        *,
        idle: bool,
        held: bool,
    ) -> GroupObservation:
        end, start, _, _ = seen
        self.record += 1
        topic = make_topic("x", 1, end=end, log_start_offsets=packed([start]))
        return make_observation(
            self.record,
            topic,
            round=self.number,
            time=time,
            closed=time + took,
            elapsed=self.elapsed,
            idle=idle,
            held_since=time if held else None,
            rested_since=stretch[0] if stretch else -1,
            rested_until=stretch[1] if stretch else -1,
        )


def lived(seed: int, rounds: int) -> Iterator[Evaluation]:
    """Evaluations of a random life: phases of producing and reading, accidents of log, probe and clock."""
    draw = random.Random(seed)
    world = World(draw)
    world.live(world.now + draw.choice((0, 3_600_000)))
    world.committed = draw.randint(0, len(world.arrived))
    watched = Watched(world)
    mode, left = "keeps up", 0
    calm = 0
    for _ in range(rounds):
        if not left:
            mode = draw.choice(("keeps up", "keeps up", "crawls", "pauses", "pauses", "rarely"))
            world.rate = draw.choice((0.0, 0.02, 0.5, 3.0))
            world.has_members = mode != "pauses" or draw.random() < 0.5
            left = draw.choice((5, 40, 150))
        left -= 1
        end = len(world.arrived)
        commit: int | None = None
        if mode == "keeps up":
            commit = end - draw.choice((0, 0, 3))
        elif mode == "crawls":
            commit = min(end, world.committed + draw.randint(0, 8))
        elif mode == "rarely" and draw.random() < 0.05:
            commit = end
        wrong_by, unknown, held = 0, False, False
        accident = draw.random()
        if accident < 0.004:
            commit = draw.randint(world.start, end)  # a seek
        elif accident < 0.008:
            world.start = draw.randint(world.start, end)
        elif accident < 0.0085 and end > world.start:
            # An unclean election. Nothing arrives before the round that sees it: a log that is cut back and longer
            # again within one round looks as if it had only grown (docs/lag-in-time.md).
            del world.arrived[draw.randint(world.start, end - 1) :]
            world.rate, left = 0.0, 1
        elif accident < 0.020:
            unknown = True
        elif accident < 0.025:
            held, commit = True, None
        elif accident < 0.028 and not calm:
            wrong_by = draw.choice((-DAY, -5 * 60_000, 5 * 60_000, DAY))
            calm = 5
        calm = max(0, calm - 1)
        if commit is not None:
            commit = min(commit, len(world.arrived))
            commit = max(0, commit)
            if commit == world.committed and draw.random() < 0.8:
                commit = None
        found = watched.round(wrong_by=wrong_by, unknown=unknown, held=held, commit=commit)
        if found is not None:
            yield found
        pause = INTERVAL + draw.randint(-200, 200)
        if draw.random() < 0.002 and not calm:
            pause = draw.choice((60_000, 1_800_000))  # the probe was away
            calm = 5
        world.live(max(world.now, watched.opened_before + pause))

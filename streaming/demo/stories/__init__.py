"""The demo's stories, one module each; a module's docstring says what the tables must show.

Every story happens once within `FIRST_PASS_S` of the demo's clock. Stories that can be repeated are repeated after
that, so that a demo without an end stays alive.
"""

from __future__ import annotations

from streaming.demo.stage import Story
from streaming.demo.stories.cooperative import STORY as COOPERATIVE
from streaming.demo.stories.deletions import STORY as DELETIONS
from streaming.demo.stories.growing_topic import STORY as GROWING_TOPIC
from streaming.demo.stories.hanging_transaction import STORY as HANGING_TRANSACTION
from streaming.demo.stories.idle_member import STORY as IDLE_MEMBER
from streaming.demo.stories.junk import STORY as JUNK
from streaming.demo.stories.minutes_behind import STORY as MINUTES_BEHIND
from streaming.demo.stories.own_strategies import STORY as OWN_STRATEGIES
from streaming.demo.stories.pile_up import STORY as PILE_UP
from streaming.demo.stories.range_members import STORY as RANGE_MEMBERS
from streaming.demo.stories.roundrobin import STORY as ROUNDROBIN
from streaming.demo.stories.static_members import STORY as STATIC_MEMBERS
from streaming.demo.stories.storm import STORY as STORM
from streaming.demo.stories.stuck_member import STORY as STUCK_MEMBER
from streaming.demo.stories.stuck_rebalance import STORY as STUCK_REBALANCE
from streaming.demo.stories.transactions import STORY as TRANSACTIONS

__all__ = ["ALL_STORIES", "FIRST_PASS_S"]

FIRST_PASS_S = 120.0
"""Seconds of the demo's clock after which every story has happened once."""

ALL_STORIES: tuple[Story, ...] = (
    RANGE_MEMBERS,
    ROUNDROBIN,
    STATIC_MEMBERS,
    PILE_UP,
    OWN_STRATEGIES,
    STUCK_MEMBER,
    GROWING_TOPIC,
    TRANSACTIONS,
    COOPERATIVE,
    JUNK,
    DELETIONS,
    HANGING_TRANSACTION,
    STUCK_REBALANCE,
    STORM,
    IDLE_MEMBER,
    MINUTES_BEHIND,
)

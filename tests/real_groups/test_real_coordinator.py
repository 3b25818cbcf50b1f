"""Targets computed by a real coordinator: each equals ours from the one before.

The classes are compared elsewhere (tests/assignors/brokers/test_fuzz.py); this test covers their surroundings: the
order in which the coordinator passes members and topics (`names_in_hash_order`), and the previous target that it uses.
"""

from __future__ import annotations

import random

import pytest

from tests.real_groups.followed import Followed
from tests.real_groups.party import Party, make_topics

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]


def test_every_target_of_a_real_group_is_what_we_compute(bootstrap: str, unique: str) -> None:
    chance = random.Random(unique)
    topics = {f"{unique}-{number}": chance.randint(1, 9) for number in range(14)}
    make_topics(bootstrap, topics)
    with Followed(bootstrap, unique) as followed, Party(bootstrap, None, unique) as party:

        def settle() -> None:
            party.rest(sum(topics.values()))
            followed.round()

        names = list(topics)
        first = party.join(names)
        settle()
        joins = [
            (names, {"group_instance_id": "z"}),
            (names, {}),
            (chance.sample(names, 5), {"group_instance_id": "b"}),
        ]
        for subscribed, settings in joins:
            party.join(subscribed, **settings)
            settle()
        party.leave(first)
        settle()
        party.join(names)
        settle()
        told = [(row.verdict, row.reason) for row in followed.drift(unique).values()]
    # A target is not judged that lacks topics of a moment ago, or that the next one replaces at once; of those that are
    # judged none may differ.
    assert {verdict for verdict, _ in told} <= {"identical", "unverified", "not_applicable"}, told
    assert not [reason for _, reason in told if (reason or "").startswith("no candidate gives it")], told
    assert told.count(("identical", None)) >= 6, told

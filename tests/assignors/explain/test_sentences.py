"""The sentences of steps, word by word, and where they are cut."""

from __future__ import annotations

import pytest

from assignors.assignment import PartitionId
from assignors.explain.rocketmq import Fails, Pool
from assignors.explain.sticky_steps import (
    Generations,
    Given,
    GivenUp,
    HeldBack,
    Kept,
    Moved,
    NotBelieved,
    Undone,
)
from assignors.steps import CutIntoBlocks, DealtInRacks, DealtInTurn, GivenBack, Ordered, Result, Shares, Step
from assignors.words import count, name, names, numbers, partition_names

TWENTY = tuple(f"m{number:02}" for number in range(20))
TWELVE_LISTED = "; ".join(f"m{number:02}: t {number}" for number in range(12))
PAIRS = tuple((("t", number), member) for number, member in enumerate(TWENTY))
MOVED = Moved(("t", 1), "a", "b", 1_200, 3, "balance")
MOVES = "t 1 moves from a, which had 1,200, to b, which had 3"
BLOCKS = CutIntoBlocks(("t",), 5, ("a", "b"), (("a", 0, 2), ("b", 3, 4)))
RACKS = DealtInRacks(("t",), 5, ("a", "b"), (("a", 0), ("b", 3), ("a", 2)), (("b", 1), ("b", 4)))
ONLY_RUN = (
    "this library keeps only the last unbroken run of static members and of others in the order of the group's record."
)
CIRCLE = Pool(
    "AVG_BY_CIRCLE",
    "",
    (("q", 0), ("q", 1), ("q", 2)),
    ("a", "b"),
    ((("q", 0), "a"), (("q", 2), "a"), (("q", 1), "b")),
    in_order=False,
)

TOLD: dict[str, tuple[Step, str]] = {
    "free partitions": (
        Given("extra", ((("t", 0), "a"), (("t", 2), "b"), (("t", 1), "a")), (2, 2, 3)),
        "What is left goes, one each, to members that may have one more. a: t 0-1; b: t 2.",
    ),
    "free partitions of twelve members": (
        Given("least", PAIRS[:12], (0,) * 12),
        f"Each free partition goes to the member with the fewest among the topic's subscribers. {TWELVE_LISTED}.",
    ),
    "free partitions of thirteen": (
        Given("least", PAIRS[:13], (0,) * 13),
        ("Each free partition goes to the member with the fewest among the topic's subscribers. "
        f"{TWELVE_LISTED}; and 1 more member."),
    ),
    "a move": (MOVED, f"{MOVES}."),
    "a move to the owner of an earlier generation": (
        Moved(("t", 1), "a", "b", 2, 1, "previous"),
        "t 1 moves from a, which had 2, to b, which had 1 and owned it in an earlier generation.",
    ),
    "a move to a member below its share that does not subscribe": (
        Moved(("t", 1), "a", "b", 2, 1, "share", None, True),
        ("t 1 moves from a, which had 2, to b, which had 1 and would stay below its share; it does not subscribe to "
        "the topic, which the leader does not check here."),
    ),
    "a move in place of another": (
        Moved(("t", 1), "a", "b", 2, 0, "balance", ("t", 7)),
        ("t 1 moves from a, which had 2, to b, which had 0; in place of t 7, so that no two partitions of a topic move "
        "in opposite directions."),
    ),
    "moves that are taken back": (
        Undone(2), "After 2 moves the group is no more even than before, so they are all taken back."
    ),
    "what must wait": (
        HeldBack(((("t", 0), "a", ("d", "c")), (("t", 1), "b", ("c",)), (("t", 2), "a", ("c",)))),
        "Not assigned yet, because c, d must stop reading first; the next generation gives them to a: t 0, 2; b: t 1.",
    ),
    "what was just taken": (
        HeldBack(((("t", 0), "a", ()),)),
        ("Not assigned yet, because the leader has just taken it from that very member; the next generation gives them "
        "to a: t 0."),
    ),
    "what returns": (
        GivenBack(((("t", 0), "a"), (("u", 0), "b"))),
        "Partitions that nobody was given stay with the members that say they have them. a: t 0; b: u 0.",
    ),
    "even shares": (
        Shares(6, 3),
        "All members subscribe to the same topics: 6 partitions for 3 members make 2 each.",
    ),
    "uneven shares": (
        Shares(1_005, 2),
        ("All members subscribe to the same topics: 1,005 partitions for 2 members make 502 each, and 1 member one "
        "more."),
    ),
    "shares with a member that subscribes to less": (
        Shares(8, 3, ("a",)),
        ("All members subscribe to the same topics: 8 partitions for 3 members make 2 each, and 2 members one more. a "
        "subscribes to less and is counted too: the leader only compares the first subscription that is not empty with "
        "the later ones, and their lengths."),
    ),
    "shares with two members that subscribe to less": (
        Shares(6, 3, ("a", "b")),
        ("All members subscribe to the same topics: 6 partitions for 3 members make 2 each. a, b subscribe to less and "
        "are counted too: the leader only compares the first subscription that is not empty with the later ones, and "
        "their lengths."),
    ),
    "a claim of a newer generation": (
        NotBelieved("a", (("t", 0), ("t", 1)), "newer", "b", 0, 4),
        "a says it has t 0-1, which do not count: b claims them in a newer generation (4 after 0).",
    ),
    "a claim without a generation": (
        NotBelieved("a", (("t", 0),), "old", None, -1, 4),
        ("a says it has t 0, which does not count: it is of generation none, and only claims of the highest one, 4, "
        "count."),
    ),
    "generations": (
        Generations({"a": 3, "b": 0, "c": 5, "d": 3, "e": -1}),
        ("Members say which partitions they had. generation 5: c; generation 3: a, d; generation 0: b; no generation: "
        "e."),
    ),
    "all that is kept": (Kept("a", (("t", 0), ("t", 1)), 2), "a keeps what it had: t 0-1."),
    "the only one that is kept": (Kept("a", (("t", 0),), 1), "a keeps the one it had: t 0."),
    "a part that is kept": (Kept("a", (("t", 0), ("t", 1)), 1_000), "a keeps 2 of the 1,000 it had: t 0-1."),
    "what is given up": (
        GivenUp("a", (("t", 0), ("t", 1)), "subscription"),
        "a gives up t 0-1: it does not subscribe to the topic any more.",
    ),
    "blocks": (
        BLOCKS,
        "t has 5 partitions and 2 subscribers: 2 each, and one more for the first. In order: a: 0-2; b: 3-4.",
    ),
    "blocks of several topics": (
        CutIntoBlocks(("t", "u"), 5, ("a", "b", "c"), (("a", 0, 1), ("b", 2, 3), ("c", 4, 4)), ("d",)),
        ("t, u each have 5 partitions and 3 subscribers: 1 each, and one more for the first 2. In order: a: 0-1; b: "
        f"2-3; c: 4. d is left out: {ONLY_RUN}"),
    ),
    "even blocks without the ones that get nothing": (
        CutIntoBlocks(("t",), 1, ("a", "b", "c"), (("a", 0, 0),), ("d", "e")),
        ("t has 1 partition and 3 subscribers: 0 each, and one more for the first. In order: a: 0. b, c get nothing of "
        f"it. d, e are left out: {ONLY_RUN}"),
    ),
    "a block of which one gets nothing": (
        CutIntoBlocks(("t",), 1, ("a", "b"), (("a", 0, 0),)),
        ("t has 1 partition and 2 subscribers: 0 each, and one more for the first. In order: a: 0. b gets nothing "
        "of it."),
    ),
    "blocks of a topic that is listed twice": (
        CutIntoBlocks(("t",), 6, ("b", "a", "a"), (("b", 0, 1), ("a", 4, 5))),
        ("t has 6 partitions and 3 shares: 2 each. In order: b: 0-1; a: 4-5. a lists the topic more than once and "
        "counts as often. Partitions 2-3 stay without an owner: in this library a member's later block replaces its "
        "earlier one."),
    ),
    "blocks of a topic that two list twice": (
        CutIntoBlocks(("t",), 4, ("a", "a", "b", "b"), (("a", 0, 1), ("b", 2, 3))),
        ("t has 4 partitions and 4 shares: 1 each. In order: a: 0-1; b: 2-3. a, b list the topic more than once and "
        "count as often."),
    ),
    "blocks of thirteen": (
        CutIntoBlocks(("t",), 13, TWENTY[:13], tuple((member, n, n) for (_, n), member in PAIRS[:13])),
        ("t has 13 partitions and 13 subscribers: 1 each. In order: "
        f"{'; '.join(f'm{n:02}: {n}' for n in range(12))}; and 1 more member."),
    ),
    "blocks of twelve": (
        CutIntoBlocks(("t",), 12, TWENTY[:12], tuple((member, n, n) for (_, n), member in PAIRS[:12])),
        f"t has 12 partitions and 12 subscribers: 1 each. In order: {'; '.join(f'm{n:02}: {n}' for n in range(12))}.",
    ),
    "by racks": (
        RACKS,
        ("t (5 partitions, 2 subscribers): 2 each, and one more for up to 1 of them. By racks first: a: 0, 2; b: 3. "
        "The rest to those with room, in order, whatever their racks: b: 1, 4."),
    ),
    "all by racks, evenly": (
        DealtInRacks(("t", "u"), 2, ("a", "b"), (("a", 0), ("b", 1)), ()),
        "t, u (2 partitions each, 2 subscribers): 1 each. By racks first: a: 0; b: 1.",
    ),
    "by racks of thirteen": (
        DealtInRacks(("t",), 13, TWENTY[:13], tuple((member, n) for (_, n), member in PAIRS[:13]), ()),
        ("t (13 partitions, 13 subscribers): 1 each. By racks first: "
        f"{'; '.join(f'm{n:02}: {n}' for n in range(12))}; and 1 more member."),
    ),
    "by racks of twelve": (
        DealtInRacks(("t",), 12, TWENTY[:12], (), tuple((member, n) for (_, n), member in PAIRS[:12])),
        ("t (12 partitions, 12 subscribers): 1 each. The rest to those with room, in order, whatever their racks: "
        f"{'; '.join(f'm{n:02}: {n}' for n in range(12))}."),
    ),
    "in turn": (DealtInTurn((("t", 0, "b"), ("t", 1, "a"), ("t", 2, "b"))), "t: the turn is at b. b: t 0, 2; a: t 1."),
    "a turn": (DealtInTurn((("t", 0, "b"),)), "t: the turn is at b. b: t 0."),
    "in turn, mixed": (
        DealtInTurn((("t", 1, "b"), ("u", 0, "a")), mixed=True),
        "All partitions, sorted as texts: the turn is at b. b: t 1; a: u 0.",
    ),
    "the order": (
        Ordered("member_id", ("a", "b")),
        "The members are taken in this order: a, b (by member id, byte by byte, static or not).",
    ),
    "an order without one member": (
        Ordered("kafka-python", ("a",), ("b",)),
        ("The members are taken in this order: a (static members by group.instance.id first, then the others by member "
        f"id). b is left out: {ONLY_RUN}"),
    ),
    "an order without two members": (
        Ordered("kafka-python", ("a",), ("b", "c")),
        ("The members are taken in this order: a (static members by group.instance.id first, then the others by member "
        f"id). b, c are left out: {ONLY_RUN}"),
    ),
    "nobody in the end": (Result({}, 0), "The group has no members, so nothing is assigned."),
    "one partition in the end": (Result({"a": 0, "b": 1}, 1), "In the end 1 partition is assigned: b 1, a 0."),
    "sizes in the end, the largest first": (
        Result({"b": 1, "c": 1_200, "a": 1}, 1_202), "In the end 1,202 partitions are assigned: c 1,200, a 1, b 1."
    ),
    "twelve members in the end": (
        Result({member: 20 - n for n, member in enumerate(TWENTY[:12])}, 174),
        f"In the end 174 partitions are assigned: {', '.join(f'm{n:02} {20 - n}' for n in range(12))}.",
    ),
    "thirteen members in the end": (
        Result({member: 20 - n for n, member in enumerate(TWENTY[:13])}, 182),
        (
            f"In the end 182 partitions are assigned: {', '.join(f'm{n:02} {20 - n}' for n in range(12))} and 1 more "
            "member with 8."
        ),
    ),
    "fourteen members in the end": (
        Result({member: 20 - n for n, member in enumerate(TWENTY[:14])}, 189),
        (f"In the end 189 partitions are assigned: {', '.join(f'm{n:02} {20 - n}' for n in range(12))} and 2 more "
        "members with 7 to 8."),
    ),
    "queues in a circle": (
        CIRCLE, "3 queues for 2 clients make 1 each, and one more for the first. a: q 0, 2; b: q 1.",
    ),
    "queues of a room": (
        Pool("AVG", "of room r", (("q", 0), ("q", 1)), ("a", "b"), ((("q", 0), "a"), (("q", 1), "b")), in_order=True),
        ("2 queues of room r for 2 clients make 1 each (queues by topic, broker and number, clients by id, as Java "
        "compares strings). a: q 0; b: q 1."),
    ),
    "queues of one client": (
        Pool("AVG", "", (("q", 0), ("q", 1)), ("a",), ((("q", 0), "a"), (("q", 1), "a")), in_order=False),
        "2 queues for 1 client make 2 each. a: q 0-1.",
    ),
    "no queues": (
        Pool("CONSISTENT_HASH", "", (), ("a",), (), in_order=False), "0 queues for 1 client. Nobody gets any."
    ),
    "queues of thirteen clients": (
        Pool("AVG", "", tuple(queue for queue, _ in PAIRS[:13]), TWENTY[:13], PAIRS[:13], in_order=False),
        f"13 queues for 13 clients make 1 each. {TWELVE_LISTED}; and 1 more client.",
    ),
    "queues of twelve clients": (
        Pool("AVG", "", tuple(queue for queue, _ in PAIRS[:12]), TWENTY[:12], PAIRS[:12], in_order=False),
        f"12 queues for 12 clients make 1 each. {TWELVE_LISTED}.",
    ),
    "a call that throws": (
        Fails(("a", "b"), "IndexOutOfBounds"),
        "The call of a, b throws (IndexOutOfBounds): such a client keeps the queues that it has.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("step", "said"), TOLD.values(), ids=TOLD)
def test_a_step_says(step: Step, said: str) -> None:
    assert step.text() == said


ALONE: dict[str, tuple[Step, PartitionId, str]] = {
    "a free one of a member with one": (
        Given("share", ((("t", 0), "a"), (("t", 3), "b")), (0, 1)), ("t", 3),
        "t 3 was free and goes to b: it was below its share, with 1 partition.",
    ),
    "one that moved": (MOVED, ("t", 1), f"{MOVES}."),
    "one that waits": (
        HeldBack(((("t", 0), "a", ("d",)), (("t", 1), "b", ("c",)))), ("t", 1),
        "t 1 is meant for b, but c must stop reading first: not assigned yet.",
    ),
    "one that returns": (
        GivenBack(((("t", 0), "a"), (("u", 0), "b"))), ("u", 0),
        "Partitions that nobody was given stay with the members that say they have them. b: u 0.",
    ),
    "one that does not count": (
        NotBelieved("a", (("t", 0), ("t", 1)), "twice"), ("t", 1),
        ("a says it has t 1, which does not count: another member of the same generation claims them too, so they "
        "count as nobody's."),
    ),
    "one that is kept": (Kept("a", (("t", 0), ("t", 1)), 2), ("t", 1), "a had t 1 and keeps it."),
    "one that is given up": (
        GivenUp("a", (("t", 0), ("t", 1)), "share"), ("t", 1), "a gives up t 1: it may have no more than its share.",
    ),
    "the first of a block": (
        BLOCKS, ("t", 3),
        ("t has 5 partitions and 2 subscribers: 2 each, and one more for the first. b is number 2 in the order and "
        "gets 3-4."),
    ),
    "the last of a block": (
        BLOCKS, ("t", 2),
        ("t has 5 partitions and 2 subscribers: 2 each, and one more for the first. a is number 1 in the order and "
        "gets 0-2."),
    ),
    "one in no block": (
        CutIntoBlocks(("t",), 6, ("a", "a", "b"), (("a", 2, 3), ("b", 4, 5))), ("t", 1), "t 1 is in no member's block.",
    ),
    "one by its rack": (
        RACKS, ("t", 2), "t 2 goes to a: it is the first in the order with room that may have it by its rack.",
    ),
    "one whatever its rack": (RACKS, ("t", 4), "t 4 goes to b: it had room left, whatever its rack."),
    "one that nobody gets by racks": (RACKS, ("t", 5), "t 5 goes to nobody."),
    "the first turn": (
        DealtInTurn((("t", 0, "b"), ("t", 1, "a"))), ("t", 0), "t 0 goes to b: the turn is at it.",
    ),
    "a later turn": (
        DealtInTurn((("u", 1, "c"), ("t", 0, "b"), ("t", 1, "a")), mixed=True), ("t", 1),
        "t 1 goes to a: the turn comes to it after b.",
    ),
    "a queue": (CIRCLE, ("q", 1), "q 1 is number 2 of 3 queues, and b number 2 of 2 clients: its share."),
    "a queue of nobody": (CIRCLE, ("q", 3), "q 3 goes to nobody."),
    "a queue on a ring": (
        Pool("CONSISTENT_HASH", "", (("q", 0),), ("b",), ((("q", 0), "b"),), in_order=False, texts=("a",)), ("q", 0),
        # The MD5 of "a" begins with 0cc175b9.
        f"q 0 has the hash {0x0CC175B9} on the ring of 2^32; the next node after it belongs to b.",
    ),
    "a configured queue": (
        Pool("CONFIG", "", (("q", 0),), ("a", "b"), ((("q", 0), "a"), (("q", 0), "b")), in_order=False), ("q", 0),
        "q 0 is in the configured list, so it goes to a, b.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("step", "partition", "said"), ALONE.values(), ids=ALONE)
def test_a_step_says_of_one_partition(step: Step, partition: PartitionId, said: str) -> None:
    assert step.text_of(partition) == said


def test_a_long_name_is_cut_to_80_characters_and_one_of_blanks_is_quoted() -> None:
    assert name("n" * 80) == "n" * 80
    assert name("n" * 81) == "n" * 79 + "…"
    assert (name(""), name(" "), name("a b")) == ("''", "' '", "a b")


def test_beyond_eight_names_runs_or_topics_the_rest_is_counted() -> None:
    assert names(TWENTY[:8]) == "m00, m01, m02, m03, m04, m05, m06, m07"
    assert names(TWENTY[:9]) == "m00, m01, m02, m03, m04, m05, m06, m07 and 1 more"
    assert numbers(range(0, 16, 2)) == "0, 2, 4, 6, 8, 10, 12, 14"
    assert numbers(range(0, 18, 2)) == "0, 2, 4, 6, 8, 10, 12, 14 and 1 more range"
    assert numbers(range(0, 20, 2)) == "0, 2, 4, 6, 8, 10, 12, 14 and 2 more ranges"
    assert numbers([5, 4, 7, 7, 0]) == "0, 4-5, 7"
    assert partition_names((topic, 0) for topic in "abcdefgh") == "a 0; b 0; c 0; d 0; e 0; f 0; g 0; h 0"
    assert (
        partition_names((topic, 0) for topic in "abcdefghi")
        == "a 0; b 0; c 0; d 0; e 0; f 0; g 0; h 0 and 1 more topic"
    )
    assert (
        partition_names((topic, 0) for topic in "abcdefghij")
        == "a 0; b 0; c 0; d 0; e 0; f 0; g 0; h 0 and 2 more topics"
    )
    assert (count(0, "partition"), count(1, "partition"), count(1_200, "partition")) == (
        "0 partitions", "1 partition", "1,200 partitions",
    )  # fmt: skip

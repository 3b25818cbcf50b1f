"""`range` by hand: expected values follow the class named in the case, not our code."""

from __future__ import annotations

from assignors import Group, Subscription, assign
from tests.assignors.clients.by_hand import Case, check, each, member

LIBRDKAFKA, BOTH = "librdkafka:2.16", "java:3.5.0 librdkafka:2.2.0"
A, B, C = (member(name) for name in "abc")
IN_R1, IN_R2 = member("a", rack="r1"), member("b", rack="r2")
OF_TWO = member("a", "t u", rack="r1"), member("b", "t u", rack="r2")
PLAIN = {"a": {"t": range(1)}, "b": {"t": range(1, 2)}}
# U+1D400 is D835 DC00 in UTF-16, before U+FF21; as a code point it comes after it.
ASTRAL, WIDE = "\U0001d400", "\uff21"
STATIC_A_2, STATIC_Z_1 = member("a", instance="2"), member("z", instance="1")

CASES = {
    "the first members get the larger blocks": Case(
        "java", (C, A, B), {"t": 8}, {"c": {"t": range(6, 8)}, "a": {"t": range(3)}, "b": {"t": range(3, 6)}}
    ),
    "a member beyond the partitions gets nothing": Case("java", (A, B), {"t": 1}, {"a": {"t": range(1)}, "b": {}}),
    "topics that do not exist are passed over": Case(
        "java", (member("a", "gone empty t"),), {"t": 2, "empty": 0}, {"a": {"t": range(2)}}
    ),
    "a topic listed twice counts twice in Java up to 3.4": Case(
        "java:3.4.1", (member("a", "t t"), B), {"t": 9}, {"a": {"t": range(6)}, "b": {"t": range(6, 9)}}
    ),
    "a topic listed twice counts once in Java from 3.5 on": Case(
        "java:3.5.0", (member("a", "t t"), B), {"t": 9}, {"a": {"t": range(5)}, "b": {"t": range(5, 9)}}
    ),
    "kafka-python loses the first block of a topic listed twice": Case(
        "kafka-python:3.0.12", (member("a", "t t"), B), {"t": 9}, {"a": {"t": range(3, 6)}, "b": {"t": range(6, 9)}}
    ),
    "Java puts static members first by their instance ids": Case(
        "java",
        (A, member("b", instance="2"), member("c", instance="1")),
        {"t": 3},
        {"c": {"t": range(1)}, "b": {"t": range(1, 2)}, "a": {"t": range(2, 3)}},
    ),
    "Java sorts member ids by UTF-16": Case(
        "java", (member(WIDE), member(ASTRAL)), {"t": 2}, {ASTRAL: {"t": (0,)}, WIDE: {"t": (1,)}}
    ),
    "all others sort member ids by code points": Case(
        LIBRDKAFKA, (member(WIDE), member(ASTRAL)), {"t": 2}, {ASTRAL: {"t": (1,)}, WIDE: {"t": (0,)}}
    ),
    "kafka-python forgets the members before the last run of their kind": Case(
        "kafka-python:3.0.12",
        (A, member("b", instance="i"), C),
        {"t": 4},
        {"a": {}, "b": {"t": range(2)}, "c": {"t": range(2, 4)}},
    ),
    # By member id the dynamic m is between the static ones, whose instance ids are in the order of their member ids.
    "librdkafka compares instance ids only between two static members": Case(
        LIBRDKAFKA,
        (member("z", instance="2"), member("m"), member("a", instance="1")),
        {"t": 3},
        {"a": {"t": (0,)}, "m": {"t": (1,)}, "z": {"t": (2,)}},
    ),
    # a before z by member id and so a, m, z; but z before a by instance id.
    "librdkafka's comparison goes in a circle": Case(
        LIBRDKAFKA, (STATIC_Z_1, member("m"), STATIC_A_2), {"t": 3}, "order of these static and dynamic members"
    ),
    "librdkafka before 1.3 sorts static members by member id": Case(
        "librdkafka:1.2.0", (STATIC_Z_1, STATIC_A_2), {"t": 2}, {"a": {"t": (0,)}, "z": {"t": (1,)}}
    ),
    "librdkafka from 1.3 on sorts static members by instance id": Case(
        "librdkafka:1.3.0", (STATIC_Z_1, STATIC_A_2), {"t": 2}, {"a": {"t": (1,)}, "z": {"t": (0,)}}
    ),
    "a pattern is a topic that does not exist": Case("java", (member("a", "^t.* t"),), {"t": 2}, {"a": {"t": (0, 1)}}),
    "a pattern is matched by librdkafka's own rules": Case(
        "librdkafka:1.2 librdkafka:1.4 librdkafka:2.16", (member("a", "^t.* t"),), {"t": 2}, "pattern"
    ),
    "two members share an instance id": Case(
        f"java:3.7.1 {LIBRDKAFKA} franz-go", (member("a", instance="i"), member("b", instance="i")), {"t": 2}, "share"
    ),
    "racks do not matter before KIP-881": Case("java:3.4.1 librdkafka:2.1.1", (IN_R1, IN_R2), {"t": 2}, PLAIN),
    "racks of the replicas are not known": Case("java:3.5.0", (IN_R1, IN_R2), {"t": 2}, "replicas is|are not known"),
    "racks of another number of partitions are as good as none": Case(
        "java:3.5.0", (IN_R1, IN_R2), {"t": 2}, "not known", racks={"t": [("x",)]}
    ),
    "replicas in all racks everywhere": Case(
        BOTH, (IN_R1, IN_R2), {"t": 2}, PLAIN, racks={"t": [("r1", "r2"), ("r2", "r1")]}
    ),
    "foreign racks": Case(f"{BOTH} franz-go", (IN_R1, IN_R2), {"t": 2}, PLAIN, racks={"t": [("x",), ("y",)]}),
    "franz-go goes by the racks of leaders": Case(
        "franz-go",
        (IN_R1, IN_R2),
        {"t": 2},
        "rack of each partition's leader",
        racks={"t": [("r1", "r2"), ("r2", "r1")]},
    ),
    "the rack of a member without an existing topic does not matter": Case(
        "java:3.5.0", (A, B, member("c", "gone", rack="r1")), {"t": 2}, PLAIN
    ),
    # a may have three, but only one is in its rack. b, with three in its rack, may have two or three: a is one below
    # its minimum of two, so the extra one is still available. The rest goes to a.
    "members get what is in their racks as far as their share goes": Case(
        BOTH,
        (IN_R1, IN_R2),
        {"t": 5},
        {"a": {"t": (3, 4)}, "b": {"t": (0, 1, 2)}},
        racks={"t": [("r2",), ("r2",), ("r2",), ("r1",), ("x",)]},
    ),
    # Partition 0 is in r1 in both topics, so a takes it; 1 and 2 have no common rack, and follow the order of members.
    "topics of the same size and members are dealt together": Case(
        BOTH,
        OF_TWO,
        {"t": 3, "u": 3},
        {"a": {"t": (0, 1), "u": (0, 1)}, "b": {"t": (2,), "u": (2,)}},
        racks={"t": [("r2", "r1"), ("r2",), ("r1",)], "u": [("r1",), ("r1",), ("r2",)]},
    ),
    "topics dealt together go by the order of the partitions": Case(
        BOTH,
        OF_TWO,
        {"t": 2, "u": 2},
        {"a": {"t": (1,), "u": (1,)}, "b": {"t": (0,), "u": (0,)}},
        racks={"t": [("r2",), ("r1",)], "u": [("r2",), ("r1",)]},
    ),
    "a member without a rack is in all of them for Java": Case(
        "java:3.5.0",
        (member("a", "t u"), member("b", "t u", rack="r1")),
        {"t": 2, "u": 2},
        {"a": {"t": (0,), "u": (0,)}, "b": {"t": (1,), "u": (1,)}},
        racks={"t": [("r1",), ("r2",)], "u": [("r1",), ("r2",)]},
    ),
    "a member without a rack is in none for topics of librdkafka together": Case(
        "librdkafka:2.2.0",
        (member("a", "t u"), member("b", "t u", rack="r1")),
        {"t": 2, "u": 2},
        {"a": {"t": (1,), "u": (1,)}, "b": {"t": (0,), "u": (0,)}},
        racks={"t": [("r1",), ("r2",)], "u": [("r1",), ("r2",)]},
    ),
}


@each(CASES)
def test_a_group_gets_what_was_worked_out_by_hand(case: Case, library: str) -> None:
    check(case, library)


def test_topics_together_that_need_no_racks_are_dealt_by_them_in_java_only_where_another_topic_needs_them() -> None:
    members = member("a", "t u v", rack="elsewhere"), member("b", "t u v", rack="r1")
    everywhere = {"t": [("r1",), ("r1",)], "u": [("r1",), ("r1",)]}
    needs = everywhere | {"v": [("r1",), ("x",), ("x",)]}
    needs_not = everywhere | {"v": [("r1",), ("r1",), ("r1",)]}

    def by_rack(library: str, racks: dict[str, list[tuple[str, ...]]]) -> bool:
        result = assign("range", Group(members, {"t": 2, "u": 2, "v": 3}), library, racks)["b"]
        return tuple(result["t"]) == tuple(result["u"]) == (0,)

    assert (by_rack("java:3.5.0", needs), by_rack("java:3.5.0", needs_not)) == (True, False)
    assert (by_rack("librdkafka:2.2.0", needs), by_rack("librdkafka:2.2.0", needs_not)) == (True, True)


def test_partitions_are_ranges_by_topic_and_every_member_is_there() -> None:
    assert assign("range", Group((Subscription("a", ("t",)), B, C), {"t": 2})) == {
        "a": {"t": range(1)},
        "b": {"t": range(1, 2)},
        "c": {},
    }

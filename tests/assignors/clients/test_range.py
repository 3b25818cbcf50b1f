"""`range` by hand: expected values follow the class named in the test, not our code."""

from __future__ import annotations

from typing import ClassVar

import pytest

from assignors import Assignment, CannotTell, Group, Subscription, assign, same

JAVA_34, JAVA_35 = "java:3.4.1", "java:3.5.0"
LIBRDKAFKA = "librdkafka:2.2.0"


def group(*members: Subscription, **counts: int) -> Group:
    return Group(members, counts)


def test_the_first_members_get_the_larger_blocks() -> None:
    a, b, c = (Subscription(member_id, ("t",)) for member_id in "abc")

    result = assign("range", group(c, a, b, t=8))

    assert result == {"c": {"t": range(6, 8)}, "a": {"t": range(3)}, "b": {"t": range(3, 6)}}


def test_a_member_beyond_the_partitions_gets_nothing_and_is_listed() -> None:
    a, b = Subscription("a", ("t",)), Subscription("b", ("t",))

    assert assign("range", group(a, b, t=1)) == {"a": {"t": range(1)}, "b": {}}


def test_topics_that_do_not_exist_are_passed_over() -> None:
    a = Subscription("a", ("gone", "empty", "t"))

    assert assign("range", group(a, t=2, empty=0)) == {"a": {"t": range(2)}}


def test_java_counts_a_topic_listed_twice_twice_up_to_release_3_4() -> None:
    a, b = Subscription("a", ("t", "t")), Subscription("b", ("t",))

    assert assign("range", group(a, b, t=9), JAVA_34) == {"a": {"t": range(6)}, "b": {"t": range(6, 9)}}
    assert assign("range", group(a, b, t=9), JAVA_35) == {"a": {"t": range(5)}, "b": {"t": range(5, 9)}}


def test_kafka_python_loses_the_first_block_of_a_topic_listed_twice() -> None:
    a, b = Subscription("a", ("t", "t")), Subscription("b", ("t",))

    result = assign("range", group(a, b, t=9), "kafka-python:3.0.12")

    assert result == {"a": {"t": range(3, 6)}, "b": {"t": range(6, 9)}}


def test_java_puts_static_members_first_by_their_instance_ids() -> None:
    dynamic = Subscription("a", ("t",))
    second = Subscription("b", ("t",), group_instance_id="2")
    first = Subscription("c", ("t",), group_instance_id="1")

    result = assign("range", group(dynamic, second, first, t=3))

    assert result == {"c": {"t": range(1)}, "b": {"t": range(1, 2)}, "a": {"t": range(2, 3)}}


def test_java_sorts_member_ids_by_utf16_and_all_others_by_code_point() -> None:
    # U+1D400 is D835 DC00 in UTF-16, before U+FF21; as a code point it comes after it.
    astral, wide = Subscription("\U0001d400", ("t",)), Subscription("\uff21", ("t",))

    java = assign("range", group(wide, astral, t=2))
    librdkafka = assign("range", group(wide, astral, t=2), "librdkafka:2.16")

    assert java == {"\U0001d400": {"t": range(1)}, "\uff21": {"t": range(1, 2)}}
    assert librdkafka == {"\U0001d400": {"t": range(1, 2)}, "\uff21": {"t": range(1)}}


def test_kafka_python_forgets_the_members_before_the_last_run_of_their_kind() -> None:
    a = Subscription("a", ("t",))
    b = Subscription("b", ("t",), group_instance_id="i")
    c = Subscription("c", ("t",))

    result = assign("range", group(a, b, c, t=4), "kafka-python:3.0.12")

    assert result == {"a": {}, "b": {"t": range(2)}, "c": {"t": range(2, 4)}}


def test_librdkafka_compares_instance_ids_only_between_two_static_members() -> None:
    # By member id the dynamic m is between the static ones, whose instance ids are in the order of their member ids.
    first = Subscription("a", ("t",), group_instance_id="1")
    dynamic = Subscription("m", ("t",))
    last = Subscription("z", ("t",), group_instance_id="2")

    result = assign("range", group(last, dynamic, first, t=3), "librdkafka:2.16")

    assert result == {"a": {"t": range(1)}, "m": {"t": range(1, 2)}, "z": {"t": range(2, 3)}}


def test_librdkafka_cannot_be_told_where_its_comparison_goes_in_a_circle() -> None:
    # a before z by member id and so a, m, z; but z before a by instance id.
    first = Subscription("a", ("t",), group_instance_id="2")
    dynamic = Subscription("m", ("t",))
    last = Subscription("z", ("t",), group_instance_id="1")

    with pytest.raises(CannotTell, match="order of these static and dynamic members"):
        assign("range", group(last, dynamic, first, t=3), "librdkafka:2.16")


def test_librdkafka_before_1_3_sorts_static_members_by_member_id() -> None:
    first, last = (
        Subscription("a", ("t",), group_instance_id="2"),
        Subscription("z", ("t",), group_instance_id="1"),
    )

    assert assign("range", group(last, first, t=2), "librdkafka:1.2.0")["a"] == {"t": range(1)}
    assert assign("range", group(last, first, t=2), "librdkafka:1.3.0")["a"] == {"t": range(1, 2)}


def test_a_pattern_in_a_subscription_is_a_topic_that_does_not_exist_save_to_librdkafka() -> None:
    for strategy in ("range", "roundrobin"):
        a = Subscription("a", ("^t.*", "t"))
        assert assign(strategy, group(a, t=2)) == {"a": {"t": range(2)}}
        for release in ("1.2", "1.4", "2.16"):
            with pytest.raises(CannotTell, match="pattern"):
                assign(strategy, group(a, t=2), f"librdkafka:{release}")


def test_two_members_with_one_instance_id_cannot_be_told() -> None:
    a, b = (Subscription(member_id, ("t",), group_instance_id="i") for member_id in "ab")

    for library in ("java:3.7.1", "librdkafka:2.16", "franz-go"):
        with pytest.raises(CannotTell, match="share"):
            assign("range", group(a, b, t=2), library)


class TestRacks:
    """KIP-881."""

    a = Subscription("a", ("t",), rack="r1")
    b = Subscription("b", ("t",), rack="r2")
    plain: ClassVar[Assignment] = {"a": {"t": range(1)}, "b": {"t": range(1, 2)}}

    def test_racks_matter_to_java_from_3_5_only(self) -> None:
        assert assign("range", group(self.a, self.b, t=2), JAVA_34) == self.plain
        with pytest.raises(CannotTell, match="racks of the replicas are not known"):
            assign("range", group(self.a, self.b, t=2), JAVA_35)

    def test_replicas_in_all_racks_everywhere_leave_java_and_librdkafka_plain(self) -> None:
        racks = {"t": [("r1", "r2"), ("r2", "r1")]}

        for library in (JAVA_35, LIBRDKAFKA):
            assert assign("range", group(self.a, self.b, t=2), library, racks) == self.plain

    def test_members_get_what_is_in_their_racks_as_far_as_their_share_goes(self) -> None:
        racks = {"t": [("r2",), ("r2",), ("r2",), ("r1",), ("x",)]}

        # a may have three, but only one is in its rack. b, with three in its rack, may have two or three: a is one
        # below its minimum of two, so the extra one is still available. The rest goes to a.
        for library in (JAVA_35, LIBRDKAFKA):
            assert same(
                assign("range", group(self.a, self.b, t=5), library, racks),
                {"a": {"t": (3, 4)}, "b": {"t": (0, 1, 2)}},
            )

    def test_topics_of_the_same_size_and_members_are_dealt_together(self) -> None:
        a, b = Subscription("a", ("t", "u"), rack="r1"), Subscription("b", ("t", "u"), rack="r2")
        # Partition 0 is in r1 in both topics, partition 1 in r2 in t only, so no rack has it in both.
        racks = {"t": [("r2", "r1"), ("r2",), ("r1",)], "u": [("r1",), ("r1",), ("r2",)]}

        for library in (JAVA_35, LIBRDKAFKA):
            # a takes 0, for which it is first; 1 and 2 have no common rack, and follow the order of the members.
            assert same(
                assign("range", group(a, b, t=3, u=3), library, racks),
                {"a": {"t": (0, 1), "u": (0, 1)}, "b": {"t": (2,), "u": (2,)}},
            )

    def test_topics_dealt_together_go_by_the_order_of_the_partitions(self) -> None:
        a, b = Subscription("a", ("t", "u"), rack="r1"), Subscription("b", ("t", "u"), rack="r2")
        racks = {"t": [("r2",), ("r1",)], "u": [("r2",), ("r1",)]}

        for library in (JAVA_35, LIBRDKAFKA):
            assert same(
                assign("range", group(a, b, t=2, u=2), library, racks),
                {"a": {"t": (1,), "u": (1,)}, "b": {"t": (0,), "u": (0,)}},
            )

    def test_a_member_without_a_rack_is_in_all_of_them_for_java_and_in_none_for_topics_of_librdkafka_together(
        self,
    ) -> None:
        a, b = Subscription("a", ("t", "u")), Subscription("b", ("t", "u"), rack="r1")
        racks = {"t": [("r1",), ("r2",)], "u": [("r1",), ("r2",)]}

        java = assign("range", group(a, b, t=2, u=2), JAVA_35, racks)
        librdkafka = assign("range", group(a, b, t=2, u=2), LIBRDKAFKA, racks)

        assert same(java, {"a": {"t": (0,), "u": (0,)}, "b": {"t": (1,), "u": (1,)}})
        assert same(librdkafka, {"a": {"t": (1,), "u": (1,)}, "b": {"t": (0,), "u": (0,)}})

    def test_topics_together_that_need_no_racks_are_dealt_by_them_in_java_only_where_another_topic_needs_them(
        self,
    ) -> None:
        a = Subscription("a", ("t", "u", "v"), rack="elsewhere")
        b = Subscription("b", ("t", "u", "v"), rack="r1")
        everywhere = {"t": [("r1",), ("r1",)], "u": [("r1",), ("r1",)]}
        needs = everywhere | {"v": [("r1",), ("x",), ("x",)]}
        needs_not = everywhere | {"v": [("r1",), ("r1",), ("r1",)]}
        of_b = {"t": (0,), "u": (0,)}

        def got(library: str, racks: dict[str, list[tuple[str, ...]]]) -> bool:
            result = assign("range", group(a, b, t=2, u=2, v=3), library, racks)["b"]
            return all(tuple(result[topic]) == of_b[topic] for topic in of_b)

        assert (got(JAVA_35, needs), got(JAVA_35, needs_not)) == (True, False)
        assert (got(LIBRDKAFKA, needs), got(LIBRDKAFKA, needs_not)) == (True, True)

    def test_foreign_racks_leave_every_library_plain(self) -> None:
        racks = {"t": [("x",), ("y",)]}

        for library in (JAVA_35, LIBRDKAFKA, "franz-go"):
            assert same(assign("range", group(self.a, self.b, t=2), library, racks), self.plain)

    def test_franz_go_which_goes_by_the_racks_of_leaders_cannot_be_told(self) -> None:
        racks = {"t": [("r1", "r2"), ("r2", "r1")]}

        with pytest.raises(CannotTell, match="rack of each partition's leader"):
            assign("range", group(self.a, self.b, t=2), "franz-go", racks)

    def test_librdkafka_before_2_2_knows_no_racks(self) -> None:
        assert assign("range", group(self.a, self.b, t=2), "librdkafka:2.1.1") == self.plain

    def test_racks_of_another_number_of_partitions_are_as_good_as_none(self) -> None:
        with pytest.raises(CannotTell, match="not known"):
            assign("range", group(self.a, self.b, t=2), JAVA_35, {"t": [("x",)]})

    def test_the_rack_of_a_member_without_an_existing_topic_does_not_matter(self) -> None:
        bystander = Subscription("c", ("gone",), rack="r1")
        plain_a, plain_b = Subscription("a", ("t",)), Subscription("b", ("t",))

        assert same(assign("range", group(plain_a, plain_b, bystander, t=2), JAVA_35), self.plain)

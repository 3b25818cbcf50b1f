"""The order in which a leader walks its members: the largest difference between libraries.

C and Go compare strings by UTF-8 bytes and Python by code points, which is the same order; Java compares UTF-16 code
units, which differs for characters beyond U+FFFF against U+E000 to U+FFFF.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, filterfalse, groupby, pairwise
from operator import attrgetter

from assignors.exceptions import CannotTell
from assignors.model import Subscription


def utf16(text: str) -> bytes:
    """Sort key for Java's string order (`String.compareTo`)."""
    return text.encode("utf-16-be", "surrogatepass")


def sorted_utf16(texts: Iterable[str]) -> list[str]:
    """Sort strings as Java does."""
    listed = list(texts)
    if all(map(str.isascii, listed)):
        return sorted(listed)
    return sorted(listed, key=utf16)


def java_order(members: Sequence[Subscription]) -> list[Subscription]:
    """Static members by instance id, then dynamic ones by member id (`MemberInfo.compareTo`, Java >= 2.4).

    Raises:
        CannotTell: Two members share an instance id.
    """
    return _static_first(members, utf16)


def java_by_member_id(members: Sequence[Subscription]) -> list[Subscription]:
    """By member id only (Java before 2.4, which has no `MemberInfo`)."""
    return sorted(members, key=lambda member: utf16(member.member_id))


def franz_go_order(members: Sequence[Subscription]) -> list[Subscription]:
    """Like Java, in byte order (`joinMemberLess`, kgo/group_balancer.go).

    Raises:
        CannotTell: Two members share an instance id.
    """
    return _static_first(members, str)


def by_member_id(members: Sequence[Subscription]) -> list[Subscription]:
    """By member id only, in byte order, without instance ids."""
    return sorted(members, key=_member_id)


def record_order(members: Sequence[Subscription]) -> list[Subscription]:
    """As the coordinator listed them in the JoinGroup response, which is usually the order of the record."""
    return list(members)


def librdkafka_order(members: Sequence[Subscription]) -> list[Subscription]:
    """Two static members by instance id, any other two by member id (`rd_kafka_group_member_cmp`, >= 1.3).

    Raises:
        CannotTell: The comparison is cyclic for these members, so the result depends on the C library's sort. This
            happens if the member id of a dynamic member lies between those of two static members whose instance ids are
            in the opposite order.
    """
    static = sorted(filter(_is_static, members), key=_instance_id)
    dynamic = sorted(filterfalse(_is_static, members), key=_member_id)
    _refuse_shared_instances(static)
    result: list[Subscription] = []
    static_ids = sorted(member.member_id for member in static)
    highest = list(accumulate((member.member_id for member in static), max))
    done = 0
    for member in dynamic:
        before = bisect_left(static_ids, member.member_id)
        if before and highest[before - 1] > member.member_id:
            reason = "librdkafka's order of these static and dynamic members is not defined"
            raise CannotTell(reason)
        result += [*static[done:before], member]
        done = before
    return result + static[done:]


def kafka_python_order(members: Sequence[Subscription]) -> list[Subscription]:
    """Static, then dynamic members, but only the last unbroken run of each kind (kafka-python >= 2.3).

    Its assignors collect `itertools.groupby` over unsorted members into a dict, so a later run of the same kind
    replaces an earlier one: members a (dynamic), b (static), c (dynamic) become b, c, and a gets nothing.
    """
    runs = {static: list(run) for static, run in groupby(members, key=_is_static)}
    static, dynamic = runs.get(True, ()), runs.get(False, ())
    return sorted(static, key=attrgetter("group_instance_id", "member_id")) + sorted(dynamic, key=_member_id)


_member_id = attrgetter("member_id")
_instance_id = attrgetter("group_instance_id")


def _is_static(member: Subscription) -> bool:
    return member.group_instance_id is not None


def _static_first(members: Sequence[Subscription], key: Callable[[str], bytes | str]) -> list[Subscription]:
    static = list(filter(_is_static, members))
    if not static:
        return sorted(members, key=lambda member: key(member.member_id))
    static.sort(key=lambda member: key(_instance_id(member)))
    _refuse_shared_instances(static)
    return static + sorted(filterfalse(_is_static, members), key=lambda member: key(member.member_id))


def _refuse_shared_instances(ordered: Sequence[Subscription]) -> None:
    # A coordinator never allows this; the order of such members would be that of a hash map.
    if any(a.group_instance_id == b.group_instance_id for a, b in pairwise(ordered)):
        reason = "two members share a group.instance.id"
        raise CannotTell(reason)

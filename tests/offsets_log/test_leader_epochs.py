"""Leader epochs of a log partition by offset, and on the records that decide."""

from __future__ import annotations

import numpy as np

from streaming.offsets_log import Compactor, LeaderEpochs
from streaming.records import GroupEpoch, MembershipRecord, TargetEpoch
from tests.offsets_log.written import group_epoch, group_key, group_value, other_key


def known(*batches: tuple[int, int]) -> LeaderEpochs:
    """Batches as (first offset, epoch), added one by one."""
    epochs = LeaderEpochs()
    for first, epoch in batches:
        epochs.add(np.array([first]), np.array([epoch]))
    return epochs


def test_an_offset_has_the_epoch_of_its_batch() -> None:
    epochs = known((10, 3), (20, 3), (30, 5), (40, 6))
    assert [epochs.at(offset) for offset in (10, 19, 29, 30, 39, 40, 999)] == [3, 3, 3, 5, 5, 6, 6]


def test_before_the_first_batch_nothing_is_known() -> None:
    assert LeaderEpochs().at(5) == -1
    assert known((10, 3)).at(9) == -1


def test_batches_may_come_together_or_one_by_one_or_again() -> None:
    together = LeaderEpochs()
    together.add(np.array([10, 20, 30, 40]), np.array([3, 3, 5, 6]))
    together.add(np.array([], np.int64), np.array([], np.int64))
    together.add(np.array([30, 40, 50]), np.array([5, 6, 6]))
    alone = known((10, 3), (20, 3), (30, 5), (40, 6), (50, 6))
    assert [together.at(offset) for offset in range(60)] == [alone.at(offset) for offset in range(60)]


def test_the_records_that_decide_have_the_epoch_of_their_batch() -> None:
    codec = Compactor(0, 1, (), lambda _: True, lambda _: True, epochs=known((0, 3), (2, 4)))
    codec.add(0, 1_000, group_key("classic"), group_value(3, []))
    codec.add(1, 1_000, other_key(3, "modern"), group_epoch(7))
    codec.add(2, 1_000, other_key(6, "modern"), group_epoch(7))
    codec.add(3, 1_000, group_key("classic"), group_value(3, []))
    items = [item for _, inputs in codec.groups() for item in inputs]
    decide = [item for item in items if isinstance(item, MembershipRecord | GroupEpoch | TargetEpoch)]
    assert sorted((item.record, item.leader_epoch) for item in decide) == [(0, 3), (1, 3), (2, 4), (3, 4)]


def test_without_epochs_they_have_none() -> None:
    codec = Compactor(0, 1, (), lambda _: True, lambda _: True)
    codec.add(0, 1_000, group_key("classic"), group_value(3, []))
    ((_, (item,)),) = codec.groups()
    assert isinstance(item, MembershipRecord)
    assert item.leader_epoch == -1

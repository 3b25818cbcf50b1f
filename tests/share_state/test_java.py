"""Share states against the share coordinator's own classes: the values that they write, and what they make of them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from streaming.share_state import PartitionDeliveries, ShareStates, StateBatch, StateRecord, decode_state
from tests.examples import examples
from tests.oracle.java_runner import JavaRunner

pytestmark = pytest.mark.java

_KEYS = {
    kind: bytes((0, number)) + b"\0\1g" + bytes(range(16)) + (7).to_bytes(4, "big")
    for kind, number in (("S", 0), ("U", 1))
}


@pytest.fixture(scope="module")
def coordinator() -> Iterator[JavaRunner]:
    with JavaRunner("ShareStateRunner.java", "broker") as runner:
        yield runner


def history(chance: random.Random) -> str:
    """A partition's records as a leader writes them, and many that none would write."""
    records = []
    start = chance.choice((-1, 0, 5))
    for at in range(chance.randint(1, 6)):
        kind = "U" if at and chance.random() < 0.8 else chance.choice("SSSU")
        batches = []
        for _ in range(chance.randint(0, 5)):
            first = chance.randint(max(start, 0), max(start, 0) + 12)
            last = first + chance.choice((0, 0, 1, 3, 9))
            batches.append(f"{first},{last},{chance.choice((0, 2, 4))},{chance.randint(1, 3)}")
        start = chance.choice((-1, start, start, start + chance.randint(0, 6)))
        if kind == "S" or not at:
            # Taken as it is; coordinators write there what their combiner made, without overlaps.
            batches = batches[:1]
        records.append(f"{kind}|{start}|{chance.randint(-1, 9)}|{'/'.join(batches)}")
    return ";".join(records)


def by_offset(batches: str) -> dict[int, tuple[int, int]]:
    """State and deliveries of each offset, from the runner's answer."""
    found = {}
    for first, last, state, deliveries in (map(int, batch.split(",")) for batch in batches.split("/") if batch):
        found.update(dict.fromkeys(range(first, last + 1), (state, deliveries)))
    return found


def of_ours(known: PartitionDeliveries) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for batch in known.batches:
        offsets = range(batch.first, batch.last + 1)
        assert found.keys().isdisjoint(offsets)
        found.update(dict.fromkeys(offsets, (batch.state, batch.deliveries)))
    return found


def test_every_history_ends_in_the_state_that_the_coordinator_has(coordinator: JavaRunner) -> None:
    chance = random.Random(932)
    histories = [history(chance) for _ in range(examples(1_500))]
    for line, answer in zip(histories, coordinator.ask(histories), strict=True):
        written, _, after = answer.partition(" ")
        states = ShareStates()
        for record, value in zip(line.split(";"), written.split(","), strict=True):
            decoded = decode_state(_KEYS[record[0]], bytes.fromhex(value))
            assert isinstance(decoded, StateRecord)
            states.apply(decoded, counts=True)
        [known] = states.of("g").values()
        start, complete, batches = after.split("|")
        # What is below the start of a snapshot stays in the class until the next record.
        theirs = {offset: said for offset, said in by_offset(batches).items() if offset >= int(start)}
        assert (line, known.start, of_ours(known)) == (line, int(start), theirs)
        done = sum(state in {2, 4} for state, _ in of_ours(known).values())
        assert known.done == (done if complete == "-1" else int(complete)), line
        assert known.batches == sorted(known.batches)
        assert all(
            (one.last + 1, one[2:]) != (other.first, other[2:])
            for one, other in zip(known.batches, known.batches[1:], strict=False)
        )


def test_a_value_that_the_class_writes_has_its_fields(coordinator: JavaRunner) -> None:
    [answer] = coordinator.ask(["S|3|2|4,6,0,2/8,8,4,5;U|-1|-1|9,9,2,1"])
    snapshot, update = (bytes.fromhex(value) for value in answer.split(" ")[0].split(","))
    first = decode_state(_KEYS["S"], snapshot)
    assert isinstance(first, StateRecord)
    assert (first.snapshot, first.start, first.done) == (True, 3, 2)
    assert first.batches == (StateBatch(4, 6, 2, 0), StateBatch(8, 8, 5, 4))
    second = decode_state(_KEYS["U"], update)
    assert isinstance(second, StateRecord)
    assert (second.snapshot, second.start, second.done, second.batches) == (False, -1, -1, (StateBatch(9, 9, 1, 2),))

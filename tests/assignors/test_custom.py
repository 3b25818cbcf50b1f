"""Custom strategies are found and run, and never crash their caller."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import assignors.custom
from assignors import (
    BadStrategy,
    CannotTell,
    CustomStrategies,
    CustomStrategy,
    Group,
    Library,
    Subscription,
    assign,
    custom_strategies,
    from_pairs,
    same,
)
from assignors.custom import installed_strategies
from assignors.measures import outcome, settled

GROUP = Group((Subscription("b", ("t",)), Subscription("a", ("t",))), {"t": 3})


def custom(attribute: str, **given: bool) -> CustomStrategy:
    return CustomStrategy("mine", f"tests.assignors.custom_examples:{attribute}", **given)


def test_a_class_is_made_and_asked() -> None:
    result = assign(custom("FirstTakesAll").strategy(), GROUP)

    assert same(result, from_pairs({"a": [("t", 0), ("t", 1), ("t", 2)]}))
    assert set(result) == {"a", "b"}


def test_a_function_is_asked_and_a_path_may_have_dots_only() -> None:
    expected = from_pairs({"b": [("t", 0), ("t", 2)], "a": [("t", 1)]})

    assert same(assign(custom("reversed_range").strategy(), GROUP), expected)
    assert same(
        assign(CustomStrategy("mine", "tests.assignors.custom_examples.reversed_range").strategy(), GROUP), expected
    )


@pytest.mark.parametrize("library", [None, "3.7.1", "librdkafka:2.16", Library("unknown")])
def test_the_leaders_library_makes_no_difference(library: Library | str | None) -> None:
    assert assign(custom("FirstTakesAll").strategy(), GROUP, library)["a"] == {"t": (0, 1, 2)}


def test_a_strategy_says_whether_it_is_deterministic_and_the_configuration_has_the_last_word() -> None:
    assert custom("FirstTakesAll").strategy().deterministic
    assert not custom("Dice").strategy().deterministic
    assert custom("Dice", deterministic=True).strategy().deterministic
    assert not custom("reversed_range", deterministic=False).strategy().deterministic


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ("raises", "custom strategy 'mine' raised LookupError: no weights for t"),
        ("leaves", "custom strategy 'mine' raised SystemExit: 3"),
        ("returns_a_list", "raised TypeError: it returned a list, not partitions by topic by member"),
        ("assigns_to_a_stranger", "raised ValueError: it assigned to 'stranger', who is not in the group"),
        ("assigns_halves", "raised TypeError: 'float' object cannot be interpreted as an integer"),
        ("meddles", "raised TypeError: 'mappingproxy' object does not support item assignment"),
        ("Unmakable", "cannot be loaded: TypeError"),
        ("no_function", "is a int, neither a class nor a function"),
        ("missing", "cannot be loaded: AttributeError"),
        ("assigns_twice", "raised ValueError: it assigned partition 0 of topic 't', twice"),
        ("assigns_to_both", "raised ValueError: it assigned partition 1 of topic 't', twice"),
        ("assigns_beyond", f"it assigned partition {2**70} of topic 't', which has 3 partitions"),
        ("assigns_below", "it assigned partition -1 of topic 't', which has 3 partitions"),
    ],
)
def test_whatever_a_strategy_does_wrong_is_a_reason(attribute: str, reason: str) -> None:
    with pytest.raises(CannotTell) as told:
        assign(custom(attribute).strategy(), GROUP)
    assert reason in told.value.reason
    assert "\n" not in told.value.reason
    assert told.value.reason.encode()


def test_the_racks_are_shown_to_a_strategy() -> None:
    racks = {"t": [["east"], ["west"], ["east", "west"]]}

    assert assign(custom("tells_the_racks").strategy(), GROUP, None, racks)["a"] == {"t": (0, 2)}


def test_partitions_may_come_in_pairs_with_their_topics_and_none_of_a_topic_that_does_not_exist() -> None:
    assert assign(custom("gives_pairs").strategy(), GROUP) == {"a": {"t": (0, 1)}, "b": {"t": (2,)}}


@pytest.mark.parametrize(("name", "path"), [("range", "a:b"), ("", "a:b"), ("mine", ""), ("mine", "a"), ("mine", "a:")])
def test_what_cannot_be_listed_is_refused(name: str, path: str) -> None:
    with pytest.raises(BadStrategy):
        CustomStrategy(name, path)


def test_installed_packages_offer_strategies_and_the_configuration_goes_before_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = [
        EntryPoint("range", "tests.assignors.custom_examples:Dice", "evenkeel.assignors"),
        EntryPoint("theirs", "tests.assignors.custom_examples:FirstTakesAll", "evenkeel.assignors"),
        EntryPoint("", "tests.assignors.custom_examples:Dice", "evenkeel.assignors"),
        EntryPoint("mine", "tests.assignors.custom_examples:Dice", "evenkeel.assignors"),
    ]
    monkeypatch.setattr(assignors.custom, "entry_points", lambda group: points if group == "evenkeel.assignors" else [])

    assert [found.name for found in installed_strategies()] == ["theirs", "mine"]
    both = custom_strategies([custom("reversed_range")])
    assert both.by_name().keys() == {"theirs", "mine"}
    theirs, mine = both.named("theirs"), both.named("mine")
    assert theirs is not None
    assert mine.deterministic
    assert both.named("range") is None


def test_the_list_can_be_sent_to_another_process() -> None:
    sent = pickle.loads(pickle.dumps(CustomStrategies((custom("FirstTakesAll"),))))

    found = sent.named("mine")
    assert found is not None
    assert assign(found, GROUP)["a"] == {"t": (0, 1, 2)}


def test_a_custom_strategy_is_measured_like_any_other() -> None:
    result, generations = settled(custom("FirstTakesAll").strategy(), GROUP, {})

    assert generations == 1
    assert outcome(GROUP, {}, result).imbalance == pytest.approx(1.0)
    with pytest.raises(CannotTell):
        settled(custom("raises").strategy(), GROUP, {})


_ASSIGNORS = Path(__file__).resolve().parents[2] / "docs" / "assignors.md"
PAGE = _ASSIGNORS.read_text("utf-8").split("\n## Your own\n")[1]
EVENKEEL = Path(sys.executable).with_name("evenkeel")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("way", ["entry point", "configuration"])
def test_the_example_answers_as_the_page_says(way: str, tmp_path: Path) -> None:
    [source] = blocks("python")
    entry_point, configuration = blocks("toml")
    package = tmp_path / "site" / "mycompany"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "by_weight.py").write_text(source)
    settings = tmp_path / "evenkeel.toml"
    settings.write_text(configuration if way == "configuration" else "")
    if way == "entry point":
        # pip's form of the table on the page.
        named = re.sub(r'\[project\.entry-points\."(.*)"\]', r"[\1]", entry_point).replace('"', "")
        about = tmp_path / "site" / "mycompany-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mycompany\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(named)
    asked = re.findall(r"^    \$ echo '(.*)' \| evenkeel assign\n    (.*)$", PAGE, re.MULTILINE)
    assert len(asked) == 2

    done = subprocess.run(
        [EVENKEEL, "assign"],
        input="".join(f"{line}\n" for line, _ in asked),
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site"), "EVENKEEL_CONFIG": str(settings)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )

    assert done.stdout.splitlines() == [answer for _, answer in asked]

"""What the settings mean: filters, expected strategies, owners; and the shipped file that explains them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streaming.config import Filters, Owner, Settings, load_settings, owner_of
from streaming.config import kafka as kafka_settings
from streaming.exceptions import SetupError


def test_ignore_wins_over_watch() -> None:
    filters = Filters(groups=("a", "/^pay/"), ignore_groups=("/test$/",))
    assert [g for g in ("a", "b", "payments", "payments-test", "ab") if filters.watches_group(g)] == ["a", "payments"]


def test_nothing_configured_watches_everything() -> None:
    assert Filters().watches_group("any\nname")
    assert Filters().watches_topic("")


def test_a_pattern_that_does_not_compile_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_FILTERS__GROUPS", '["/(/"]')
    with pytest.raises(
        SetupError, match=r"^The setting filters\.groups\.0 is wrong: .*regular expression /\(/"
    ) as error:
        load_settings()
    assert "\n" not in str(error.value)


def test_strategy_and_clients_come_from_the_first_rules_that_name_them() -> None:
    loaded = load_settings(
        strategies=(
            {"groups": "/^pay/", "strategy": "sticky"},
            {"groups": "/^pay/", "clients": ["java:3.7.1", "sarama"]},
            {"groups": "/./", "strategy": "range", "clients": ["librdkafka"]},
        ),
        clients=("java",),
    )
    assert loaded.group_rules.of("payments") == ("sticky", ("java:3.7.1", "sarama"))
    assert loaded.group_rules.of("orders") == ("range", ("librdkafka",))
    assert loaded.group_rules.of("") == (None, ("java",))
    assert load_settings().group_rules.of("orders") is None


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"strategies": ({"groups": "a", "clients": ["jawa"]},)}, "jawa"),
        ({"clients": ("java:new",)}, "java:new"),
        ({"strategies": ({"groups": "a"},)}, "it names neither a strategy nor clients"),
    ],
)
def test_a_rule_that_says_nothing_or_names_an_unknown_library_is_refused(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(SetupError, match=reason):
        load_settings(**wrong)


def test_the_first_rule_that_fits_names_the_expected_strategy() -> None:
    loaded = load_settings(
        strategies=({"groups": "/^pay/", "strategy": "sticky"}, {"groups": "/./", "strategy": "range"})
    )
    assert [(loaded.group_rules.of(g) or (None,))[0] for g in ("payments", "orders", "")] == ["sticky", "range", None]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('groups = "/[/"\nstrategy = "range"', r"strategies\.0\.groups is wrong: .*regular expression /\[/"),
        ('groups = "a"\nstrategy = ""', r"strategies\.0\.strategy is wrong"),
    ],
)
def test_an_expected_strategy_that_is_wrong_is_one_sentence(tmp_path: Path, content: str, place: str) -> None:
    (tmp_path / "evenkeel.toml").write_text(f"[[strategies]]\n{content}\n")
    with pytest.raises(SetupError, match=rf"^The setting {place}") as error:
        load_settings()
    assert "\n" not in str(error.value)


def test_a_group_belongs_to_the_team_of_the_first_entry_with_a_pattern_that_matches() -> None:
    owners = (
        Owner(team="payments", groups=("checkout", "/^pay/")),
        Owner(team="search", groups=("/index/", "payments-search")),
        Owner(team="rest", groups=("/^x/",)),
    )
    groups = ("checkout", "checkout2", "payments-search", "reindex", "x", "")
    assert [owner_of(g, owners) for g in groups] == ["payments", None, "payments", "search", "rest", None]
    assert owner_of("checkout", ()) is None


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('team = "a"\ngroups = ["/(/"]', r"owners\.0\.groups\.0 is wrong: .*regular expression /\(/"),
        ('team = "a"\ngroups = []', r"owners\.0\.groups is wrong"),
        ('team = ""\ngroups = ["a"]', r"owners\.0\.team is wrong"),
        ('team = "a"\ngroups = "a"', r"owners\.0\.groups is wrong"),
        ('team = "a"', r"owners\.0\.groups is wrong"),
        ('team = "a"\ngroups = ["a"]\ngroup = 1', r"owners\.0\.group is wrong"),
    ],
)
def test_an_owner_that_is_wrong_is_one_sentence(tmp_path: Path, content: str, place: str) -> None:
    (tmp_path / "evenkeel.toml").write_text(f"[[owners]]\n{content}\n")
    with pytest.raises(SetupError, match=rf"^The setting {place}"):
        load_settings()


def test_the_shipped_file_reads_as_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Path(__file__).parents[2] / "conf" / "evenkeel.toml"
    monkeypatch.setenv("EVENKEEL_CONFIG", str(shipped))
    from_file = load_settings()
    monkeypatch.delenv("EVENKEEL_CONFIG")
    assert from_file == load_settings()


def test_every_setting_is_explained_in_the_shipped_file() -> None:
    text = (Path(__file__).parents[2] / "conf" / "evenkeel.toml").read_text()
    defaults = Settings()
    for section in ("kafka", "filters", "probe", "job", "alerts", "serve", "maintenance"):
        # Secrets themselves must not be in a shipped file.
        names = set(type(getattr(defaults, section)).model_fields) - {
            *kafka_settings.KAFKA_SECRETS,
            "client",
            "token",
            "marks_token",
            "password",
            "targets",
        }
        tables = {"routes"}
        assert [n for n in sorted(names - tables) if f"# {n} =" not in text] == []
    assert [n for n in sorted(tables) if f"# [[alerts.{n}]]" not in text] == []
    assert [line for line in text.splitlines() if len(line) > 120] == []

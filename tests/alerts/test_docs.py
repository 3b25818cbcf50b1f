"""The examples of docs/alerts.md are correct."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from streaming.alerts.delivery.messages import Wording, message_of
from streaming.alerts.delivery.targets import DeliveryTarget
from streaming.alerts.rules.rules import load_rules
from streaming.config import SHIPPED_RULES, Owner
from tests.alerts.build import transition
from tests.alerts.receiver import Receiver

_PAGE = (SHIPPED_RULES.parents[1] / "docs" / "alerts.md").read_text(encoding="utf-8")

_WORDING = Wording(
    owners=(Owner(team="payments", groups=("billing",)),),
    public_url="https://evenkeel.example.org",
    runbooks={"lag": "https://wiki.example.org/lag"},
)


def _examples(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", _PAGE, re.DOTALL)
    assert found
    return found


@pytest.mark.parametrize("example", _examples("yaml"))
def test_the_rules_of_the_page_load(example: str, tmp_path: Path) -> None:
    file = tmp_path / "alerts.yaml"
    file.write_text("rules:\n" + example, encoding="utf-8")
    assert load_rules(file)


def test_a_json_target_gets_the_fields_that_the_page_shows() -> None:
    (example,) = _examples("json")
    decided = transition(labels=(("about", "lag"),))
    with Receiver() as receiver:
        assert DeliveryTarget("hook", receiver.url, 10_000).send(message_of(decided, wording=_WORDING)).reason is None
    assert set(receiver.messages[0]) == set(json.loads(example))
    assert {name: type(value) for name, value in receiver.messages[0].items()} == {
        name: type(value) for name, value in json.loads(example).items()
    }

"""The alert rules as texts to show. They are read from the file that the alerter reads, which checks them; here not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streaming.config import SHIPPED_RULES, Thresholds, read_rules_file, rules_file
from streaming.exceptions import EvenkeelError

_THRESHOLD: Final = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")

_TEXTS: Final = ("name", "severity", "view", "when", "for", "value", "message", "keep")

# A file of thousands of rules is none that a person reads.
_MOST: Final = 500


RuleText = Mapping[str, Any]
"""One rule as texts by the names of the file, "" for what it does not say. Beside them `enabled`; `labels` as pairs of
name and template; `thresholds`, those in condition and value with their numbers, None for one that the file lacks."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The content of a rules file.

    Attributes:
        rules: In the order of the file.
        shipped: Whether it is the file that comes with Evenkeel.
        problem: Why it cannot be read, in one sentence; None when it can.
    """

    rules: tuple[RuleText, ...]
    shipped: bool
    problem: str | None = None


def read_rules(file: Path | None = None) -> Rules:
    """The rules of now.

    Args:
        file: The file; None finds it as the alerter does.
    """
    try:
        file = file or rules_file()
        return Rules(rules_of(read_rules_file(file), file), shipped=file == SHIPPED_RULES)
    except (EvenkeelError, OSError) as error:
        return Rules((), shipped=False, problem=f"The alert rules cannot be read: {error}")


def rules_of(content: Mapping[str, Any], file: Path) -> tuple[RuleText, ...]:
    """The rules in the content of a file; what is no rule is left out.

    Raises:
        SetupError: The thresholds are wrong.
    """
    thresholds = Thresholds.of(content.get("thresholds"), file).by_name()
    listed = content.get("rules")
    given = [rule for rule in (listed if isinstance(listed, list) else []) if isinstance(rule, dict)]
    return tuple(_rule(rule, thresholds) for rule in given[:_MOST])


def _rule(given: Mapping[Any, Any], thresholds: Mapping[str, float]) -> RuleText:
    texts = {name: _text(given.get(name)) for name in _TEXTS}
    labels, per = given.get("labels"), given.get("per")
    labels = labels if isinstance(labels, dict) else {}
    return texts | {
        "enabled": given.get("enabled") is not False,
        "labels": [(_text(k), _text(v)) for k, v in sorted(labels.items(), key=str)],
        "per": ", ".join(map(_text, per)) if isinstance(per, list) else "",
        "thresholds": [
            (name, thresholds.get(name))
            for name in dict.fromkeys(_THRESHOLD.findall(f"{texts['when']} {texts['value']}"))
        ],
    }


def _text(given: object) -> str:
    # YAML reads `when: true` as a boolean.
    if given is None:
        return ""
    if isinstance(given, bool):
        return str(given).lower()
    return str(given).strip()

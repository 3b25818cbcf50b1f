"""The alert rules as texts to show. They are read from the file that the alerter reads, which checks them; here not."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streaming.config import SHIPPED_RULES, Thresholds, read_rules_file, rules_file
from streaming.exceptions import EvenkeelError

__all__ = ["RuleText", "Rules", "RulesFile", "rules_of"]

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


class RulesFile:
    """The rules, read again when the file changes. Any thread may ask."""

    def __init__(self, file: Path | None = None) -> None:
        """Prepare.

        Args:
            file: The file; None finds it as the alerter does.
        """
        self._file = file
        self._lock = threading.Lock()
        self._seen: tuple[Path, int, int] | None = None
        self._rules = Rules((), shipped=False)

    def read(self) -> Rules:
        """The rules of now."""
        with self._lock:
            try:
                file = self._file or rules_file()
                stat = file.stat()
                seen = (file, stat.st_mtime_ns, stat.st_size)
                if seen != self._seen:
                    self._rules = Rules(rules_of(read_rules_file(file), file), shipped=file == SHIPPED_RULES)
                    self._seen = seen
            except (EvenkeelError, OSError) as error:
                self._seen = None
                return Rules((), shipped=False, problem=f"The alert rules cannot be read: {error}")
            return self._rules


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
        "labels": [(_text(k), _text(v)) for k, v in sorted(labels.items(), key=str)]
        if isinstance(labels, dict)
        else [],
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
    return str(given).lower() if isinstance(given, bool) else str(given).strip()

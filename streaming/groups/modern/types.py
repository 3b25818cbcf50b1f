"""The types of groups that the broker assigns: a new one is a room with its rules, and a name here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streaming.groups.consumer.kind import CONSUMER_GROUPS
from streaming.groups.modern.rules import TypeRules
from streaming.groups.share.kind import SHARE_GROUPS
from streaming.groups.streams.kind import STREAMS_GROUPS

TYPES: Final[Mapping[str, TypeRules]] = {of.group_type: of for of in (CONSUMER_GROUPS, SHARE_GROUPS, STREAMS_GROUPS)}
"""Their rules, by the type's name in the records."""

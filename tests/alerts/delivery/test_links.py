"""Links in messages."""

from __future__ import annotations

from streaming.alerts.delivery.messages import Wording
from tests.alerts.build import transition


def test_a_link_leads_to_the_page_as_of_then() -> None:
    wording = Wording(public_url="https://keel.example.org/x")
    hour = "from=2023-11-14T21%3A28Z&to=2023-11-14T22%3A28Z"
    assert wording.link(transition(group_id="a/b c")) == (
        f"https://keel.example.org/x/groups/a%2Fb%20c?cluster=main&{hour}"
    )
    assert wording.link(transition(rule="silence", group_id=None)) == (
        f"https://keel.example.org/x/alerts/silence?cluster=main&{hour}"
    )
    assert Wording().link(transition()) is None

"""The targets of the settings, opened."""

from __future__ import annotations

from streaming.alerts.delivery.alertmanager import AlertmanagerTarget, is_alertmanager
from streaming.alerts.delivery.targets import DeliveryTarget
from streaming.config import Settings


def open_targets(settings: Settings) -> dict[str, DeliveryTarget | AlertmanagerTarget]:
    """The targets of the settings by name.

    Raises:
        SetupError: A URL cannot be used, or the file of targets is wrong.
    """
    return {
        name: _target(name, url.get_secret_value(), settings) for name, url in settings.alerts.all_targets().items()
    }


def _target(name: str, url: str, settings: Settings) -> DeliveryTarget | AlertmanagerTarget:
    alerts = settings.alerts
    if is_alertmanager(url):
        return AlertmanagerTarget(name, url, alerts.timeout_ms, alerts.resend_ms, settings.cluster)
    return DeliveryTarget(name, url, alerts.timeout_ms)

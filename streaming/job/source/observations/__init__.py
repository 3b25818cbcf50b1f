"""From the probe's events to observations of groups and topics, which the core takes: complete, or not at all. Pure."""

from __future__ import annotations

from streaming.job.source.observations.assembler import ObservationAssembler
from streaming.job.source.observations.event_rounds import EventRound, event_rounds
from streaming.job.source.observations.observed import rocketmq_observation

__all__ = ["EventRound", "ObservationAssembler", "event_rounds", "rocketmq_observation"]

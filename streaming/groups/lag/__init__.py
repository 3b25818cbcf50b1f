"""Lag per partition: its measurement, its status, and events on committed offsets."""

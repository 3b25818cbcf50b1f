"""Tests of `streaming.bus`."""

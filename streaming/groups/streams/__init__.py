"""Streams groups (KIP-1071), whose members have tasks."""

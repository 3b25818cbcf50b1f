"""Benchmarks: what `make bench` prints."""

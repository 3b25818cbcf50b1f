"""Lag per partition: what was committed, what it means, and for how long it has been so."""

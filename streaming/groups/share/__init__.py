"""Share groups (KIP-932): a partition has as many members as the broker gives it."""

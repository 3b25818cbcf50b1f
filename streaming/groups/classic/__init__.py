"""Classic groups: the leader assigns partitions, and one log record holds the whole membership of a generation."""

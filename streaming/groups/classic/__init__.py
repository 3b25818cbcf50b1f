"""Classic groups: their leader decides, and the log has the whole membership of each generation."""

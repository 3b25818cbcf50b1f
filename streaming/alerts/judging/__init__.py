"""From the tables' new rows to transitions: which rules hold after a round, and which alerts that begins or ends."""

"""Evenkeel: who should own which partition, who does, and what the change cost."""

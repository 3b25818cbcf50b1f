"""Evenkeel: who should own which partition, who does, and what did the change cost."""

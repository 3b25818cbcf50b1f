"""What other strategies would have made of a decision."""

"""What-if: the result that other strategies would have had at a decision."""

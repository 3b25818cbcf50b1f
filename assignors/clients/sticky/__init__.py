"""The strategies `sticky` and `cooperative-sticky`: members keep their partitions as far as balance allows."""

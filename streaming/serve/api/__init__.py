"""`/api/v1`: what the tables say, as JSON."""

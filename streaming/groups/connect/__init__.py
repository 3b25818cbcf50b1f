"""Groups of Kafka Connect workers: who runs which connectors and tasks, and whether their leader decided so."""

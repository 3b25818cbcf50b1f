"""The strategies that group leaders run in Kafka's clients."""

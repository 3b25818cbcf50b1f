"""The Spark job: adapters between Kafka, the pure core and the Delta tables."""

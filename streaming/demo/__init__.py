"""A development cluster: one real embedded broker, and real consumer groups that play the demo's stories."""

"""A development cluster: one embedded broker that is real, and real consumer groups with stories to tell."""

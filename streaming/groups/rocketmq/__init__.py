"""RocketMQ's groups: each client decides for itself, by what its broker and its name server tell it."""

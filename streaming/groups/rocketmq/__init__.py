"""RocketMQ's groups: each client decides for itself, by what its broker and its name server tell it.

One round (`round.py`) goes through these modules in this order:

    views, units, gone          what the round says, and what no server names any more
    membership, broker_members   who is in the group, by all brokers and by each
    decisions, causes            whether members hold something else now, and why
    allocation, verdicts         what each view gives, and whether members hold that
    what_if                      what the other strategies would have given
    lag                          queues as partitions, and what is unread in them
    findings, owners, watch      what has been wrong for long enough to be said
"""

"""RocketMQ's groups: each client decides for itself, by what its broker and its name server tell it.

One round goes through these modules in this order:

    views, round                what the round says, and what it is as a round of any group: members as a membership
                                record, queues as partitions, offsets as commits
    allocation, verdicts        what each view gives, and whether members hold that
    what_if                     what the other strategies would have given
    findings                    what has been wrong for long enough to be said
    kind                        whether members hold something else now, and why; the kind as `advance` knows it
"""

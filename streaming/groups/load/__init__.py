"""What a group's partitions and members have to carry: rates in windows of a heartbeat, and how even they are."""

"""Rounds against RocketMQ: every name server and every broker is asked, no group is joined."""

// Members of segmentio/kafka-go.
package main

import (
	"context"
	"errors"
	"strings"

	"github.com/segmentio/kafka-go"

	"members/serve"
)

var balancers = map[string]kafka.GroupBalancer{
	"range":         kafka.RangeGroupBalancer{},
	"roundrobin":    kafka.RoundRobinGroupBalancer{},
	"rack-affinity": kafka.RackAffinityGroupBalancer{},
}

func main() { serve.Run(member) }

func member(ctx context.Context, topics []string, settings serve.Settings, subscribe <-chan []string) error {
	for ctx.Err() == nil {
		config := kafka.ReaderConfig{
			Brokers:                strings.Split(settings["bootstrap.servers"], ","),
			GroupID:                settings["group.id"],
			GroupTopics:            topics,
			SessionTimeout:         settings.Millis("session.timeout.ms"),
			RebalanceTimeout:       settings.Millis("max.poll.interval.ms"),
			HeartbeatInterval:      settings.Millis("heartbeat.interval.ms"),
			CommitInterval:         settings.Millis("auto.commit.interval.ms"),
			PartitionWatchInterval: settings.Millis("metadata.max.age.ms"),
			WatchPartitionChanges:  true,
			MaxWait:                serve.Poll,
		}
		// Without a strategy, its default: range, then roundrobin.
		if strategy, is := settings["partition.assignment.strategy"]; is {
			config.GroupBalancers = []kafka.GroupBalancer{balancers[strategy]}
		}
		reader := kafka.NewReader(config)
		session, end := context.WithCancel(ctx)
		changed := make(chan []string, 1)
		go func() {
			select {
			case topics := <-subscribe:
				changed <- topics
				end()
			case <-session.Done():
			}
		}()
		var err error
		for err == nil {
			_, err = reader.ReadMessage(session)
		}
		end()
		// A reader cannot change its topics: another takes its place.
		closed := reader.Close()
		if !errors.Is(err, context.Canceled) {
			return err
		}
		if closed != nil {
			return closed
		}
		select {
		case topics = <-changed:
		default:
		}
	}
	return nil
}

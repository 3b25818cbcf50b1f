// Members of twmb/franz-go.
package main

import (
	"context"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"members/serve"
)

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func main() { serve.Run(member) }

func member(ctx context.Context, topics []string, settings serve.Settings, subscribe <-chan []string) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(settings["bootstrap.servers"], ",")...),
		kgo.ConsumerGroup(settings["group.id"]),
		kgo.ConsumeTopics(topics...),
		kgo.SessionTimeout(settings.Millis("session.timeout.ms")),
		kgo.RebalanceTimeout(settings.Millis("max.poll.interval.ms")),
		kgo.HeartbeatInterval(settings.Millis("heartbeat.interval.ms")),
		kgo.MetadataMaxAge(settings.Millis("metadata.max.age.ms")),
		kgo.MetadataMinAge(settings.Millis("metadata.max.age.ms") / 2),
		kgo.AutoCommitInterval(settings.Millis("auto.commit.interval.ms")),
	}
	// Without a strategy, its default.
	if strategy, is := settings["partition.assignment.strategy"]; is {
		options = append(options, kgo.Balancers(balancers[strategy]))
	}
	if instance, is := settings["group.instance.id"]; is {
		options = append(options, kgo.InstanceID(instance))
	}
	if rack, is := settings["client.rack"]; is {
		options = append(options, kgo.Rack(rack))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		select {
		case topics := <-subscribe:
			var others []string
			for _, topic := range client.GetConsumeTopics() {
				if !contains(topics, topic) {
					others = append(others, topic)
				}
			}
			client.AddConsumeTopics(topics...)
			client.PurgeTopicsFromConsuming(others...)
		default:
		}
		poll, cancel := context.WithTimeout(ctx, serve.Poll)
		client.PollFetches(poll)
		cancel()
	}
	return nil
}

func contains(topics []string, topic string) bool {
	for _, other := range topics {
		if other == topic {
			return true
		}
	}
	return false
}

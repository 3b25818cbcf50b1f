// Members of IBM/sarama.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"members/serve"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":              sarama.NewBalanceStrategyRange,
	"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
	"sticky":             sarama.NewBalanceStrategySticky,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

func main() { serve.Run(member) }

func member(ctx context.Context, topics []string, settings serve.Settings, subscribe <-chan []string) error {
	config := sarama.NewConfig()
	version, err := sarama.ParseKafkaVersion(settings["version"])
	if err != nil {
		return err
	}
	config.Version = version
	config.Metadata.RefreshFrequency = settings.Millis("metadata.max.age.ms")
	config.RackID = settings["client.rack"]
	group := &config.Consumer.Group
	group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[settings["partition.assignment.strategy"]]()}
	group.Rebalance.Timeout = settings.Millis("max.poll.interval.ms")
	group.Session.Timeout = settings.Millis("session.timeout.ms")
	group.Heartbeat.Interval = settings.Millis("heartbeat.interval.ms")
	group.InstanceId = settings["group.instance.id"]
	// The setting is hexadecimal; without it the user data stays null.
	if text, is := settings["user.data"]; is {
		if group.Member.UserData, err = hex.DecodeString(text); err != nil {
			return err
		}
	}
	config.Consumer.Offsets.AutoCommit.Interval = settings.Millis("auto.commit.interval.ms")
	consumers, err := sarama.NewConsumerGroup(
		strings.Split(settings["bootstrap.servers"], ","), settings["group.id"], config,
	)
	if err != nil {
		return err
	}
	defer consumers.Close()
	for ctx.Err() == nil {
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
		err := consumers.Consume(session, topics, handler{})
		end()
		select {
		case topics = <-changed:
		default:
		}
		if errors.Is(err, sarama.ErrClosedConsumerGroup) || errors.Is(err, sarama.ErrFencedInstancedId) {
			return err
		}
		// As its own example: any other error is tried again.
		if err != nil && ctx.Err() == nil {
			time.Sleep(serve.Poll)
		}
	}
	return nil
}

type handler struct{}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

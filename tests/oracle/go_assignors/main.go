// The balancers of kafka-go, sarama (two releases) and franz-go, asked line by line: a group in, its assignment out.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"github.com/IBM/sarama"
	old "github.com/Shopify/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type partitions map[string][]int32

type owned struct {
	Topic      string
	Partitions []int32
}

type member struct {
	ID         string
	Instance   *string
	Topics     []string
	Owned      []owned
	Generation int32
	UserData   *string // hex
}

type question struct {
	Library, Strategy string
	Members           []member
	Counts            map[string]int32
}

func (m member) userData() []byte {
	if m.UserData == nil {
		return nil
	}
	data, err := hex.DecodeString(*m.UserData)
	if err != nil {
		panic(err)
	}
	return data
}

func kafkaGo(q question) map[string]partitions {
	var balancer kafka.GroupBalancer = kafka.RangeGroupBalancer{}
	if q.Strategy == "roundrobin" {
		balancer = kafka.RoundRobinGroupBalancer{}
	}
	var members []kafka.GroupMember
	for _, m := range q.Members {
		members = append(members, kafka.GroupMember{ID: m.ID, Topics: m.Topics})
	}
	var all []kafka.Partition
	for topic, count := range q.Counts {
		for p := 0; p < int(count); p++ {
			all = append(all, kafka.Partition{Topic: topic, ID: p})
		}
	}
	result := map[string]partitions{}
	for id, topics := range balancer.AssignGroups(members, all) {
		result[id] = partitions{}
		for topic, numbers := range topics {
			for _, number := range numbers {
				result[id][topic] = append(result[id][topic], int32(number))
			}
		}
	}
	return result
}

// sarama plans only topics that somebody subscribes to and that exist (consumer_group.go `balance`).
func subscribed(q question) partitions {
	topics := partitions{}
	for _, m := range q.Members {
		for _, topic := range m.Topics {
			if q.Counts[topic] > 0 {
				topics[topic] = nil
			}
		}
	}
	for topic := range topics {
		for p := int32(0); p < q.Counts[topic]; p++ {
			topics[topic] = append(topics[topic], p)
		}
	}
	return topics
}

func newSarama(q question) (map[string]partitions, error) {
	strategy := map[string]func() sarama.BalanceStrategy{
		"range": sarama.NewBalanceStrategyRange, "roundrobin": sarama.NewBalanceStrategyRoundRobin,
		"sticky": sarama.NewBalanceStrategySticky,
	}[q.Strategy]()
	members := map[string]sarama.ConsumerGroupMemberMetadata{}
	for _, m := range q.Members {
		members[m.ID] = sarama.ConsumerGroupMemberMetadata{Topics: m.Topics, UserData: m.userData()}
	}
	plan, err := strategy.Plan(members, subscribed(q))
	result := map[string]partitions{}
	for id, topics := range plan {
		result[id] = topics
	}
	return result, err
}

func oldSarama(q question) (map[string]partitions, error) {
	strategy := map[string]old.BalanceStrategy{
		"range": old.BalanceStrategyRange, "roundrobin": old.BalanceStrategyRoundRobin, "sticky": old.BalanceStrategySticky,
	}[q.Strategy]
	members := map[string]old.ConsumerGroupMemberMetadata{}
	for _, m := range q.Members {
		members[m.ID] = old.ConsumerGroupMemberMetadata{Topics: m.Topics, UserData: m.userData()}
	}
	plan, err := strategy.Plan(members, subscribed(q))
	result := map[string]partitions{}
	for id, topics := range plan {
		result[id] = topics
	}
	return result, err
}

func franzGo(q question) (map[string]partitions, error) {
	balancer := map[string]func() kgo.GroupBalancer{
		"range": kgo.RangeBalancer, "roundrobin": kgo.RoundRobinBalancer,
		"sticky": kgo.StickyBalancer, "cooperative-sticky": kgo.CooperativeStickyBalancer,
	}[q.Strategy]()
	var members []kmsg.JoinGroupResponseMember
	for _, m := range q.Members {
		meta := kmsg.NewConsumerMemberMetadata()
		meta.Version, meta.Topics, meta.Generation, meta.UserData = 3, m.Topics, m.Generation, m.userData()
		for _, of := range m.Owned {
			has := kmsg.NewConsumerMemberMetadataOwnedPartition()
			has.Topic, has.Partitions = of.Topic, of.Partitions
			meta.OwnedPartitions = append(meta.OwnedPartitions, has)
		}
		joined := kmsg.NewJoinGroupResponseMember()
		joined.MemberID, joined.InstanceID, joined.ProtocolMetadata = m.ID, m.Instance, meta.AppendTo(nil)
		members = append(members, joined)
	}
	// group_balancer.go `joinMemberLess`, which is not exported.
	sort.Slice(members, func(i, j int) bool {
		l, r := members[i], members[j]
		if l.InstanceID != nil && r.InstanceID != nil {
			return *l.InstanceID < *r.InstanceID
		}
		if l.InstanceID != nil || r.InstanceID != nil {
			return l.InstanceID != nil
		}
		return l.MemberID < r.MemberID
	})
	of, topics, err := balancer.MemberBalancer(members)
	if err != nil {
		return nil, err
	}
	known := map[string]int32{}
	for topic := range topics {
		if count := q.Counts[topic]; count > 0 {
			known[topic] = count
		}
	}
	made, err := of.(kgo.GroupMemberBalancerOrError).BalanceOrError(known)
	if err != nil {
		return nil, err
	}
	result := map[string]partitions{}
	for _, assigned := range made.IntoSyncAssignment() {
		topics, err := kgo.ParseConsumerSyncAssignment(assigned.MemberAssignment)
		if err != nil {
			return nil, err
		}
		result[assigned.MemberID] = topics
	}
	return result, nil
}

func ask(q question) (result map[string]partitions, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("panic: %v", failure)
		}
	}()
	switch q.Library {
	case "kafka-go":
		return kafkaGo(q), nil
	case "sarama":
		return newSarama(q)
	case "sarama:1.27":
		return oldSarama(q)
	}
	return franzGo(q)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			panic(err)
		}
		result, err := ask(q)
		answer := map[string]any{"assignment": result}
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		if err := out.Encode(answer); err != nil {
			panic(err)
		}
	}
}

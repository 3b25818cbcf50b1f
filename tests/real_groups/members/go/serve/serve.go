// Package serve runs members of consumer groups on command, as tests/real_groups/member_program.py describes.
package serve

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Settings has Kafka's own names; "user.data" and "version" are sarama's.
type Settings map[string]string

// Millis is the setting of this name as a duration.
func (s Settings) Millis(name string) time.Duration {
	millis, err := strconv.Atoi(s[name])
	if err != nil {
		panic(name + ": " + err.Error())
	}
	return time.Duration(millis) * time.Millisecond
}

// Member joins, consumes and commits until the context ends, then closes its client as the client's users do.
// From `subscribe` come the topics of a changed subscription.
type Member func(ctx context.Context, topics []string, settings Settings, subscribe <-chan []string) error

// Poll is how long a member waits for records before it reads the next command.
const Poll = 200 * time.Millisecond

type running struct {
	leave     context.CancelFunc
	subscribe chan []string
}

// Run reads commands until the input ends; then every member ends with the process, as in a crash.
func Run(member Member) {
	var mutex sync.Mutex
	say := func(fields ...string) {
		mutex.Lock()
		defer mutex.Unlock()
		fmt.Println(strings.Join(fields, "\t"))
	}
	members := map[string]running{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		word, name := fields[0], fields[1]
		switch word {
		case "start":
			settings := Settings{}
			for i := 3; i+1 < len(fields); i += 2 {
				settings[fields[i]] = fields[i+1]
			}
			ctx, leave := context.WithCancel(context.Background())
			subscribe := make(chan []string, 8)
			members[name] = running{leave, subscribe}
			topics := strings.Split(fields[2], ",")
			go func() {
				if err := member(ctx, topics, settings, subscribe); err != nil {
					say("failed", name, strings.Join(strings.Fields(err.Error()), " "))
				}
				say("closed", name)
			}()
		case "subscribe":
			if member, is := members[name]; is {
				member.subscribe <- strings.Split(fields[2], ",")
			}
		case "stop":
			if member, is := members[name]; is {
				member.leave()
			}
		}
	}
}

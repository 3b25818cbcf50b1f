import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Runs many of Kafka's own consumers, each a group member in its own thread.
 *
 * Runs on the class path of one kafka-clients release.
 * Lines in, with fields separated by tabs (no name contains one; the clients' jars have no JSON library):
 *
 *   start NAME TOPICS [SETTING VALUE] ...     topics by ",", or "~" and a regular expression that the broker resolves
 *                                             (4.0 and later); settings by Kafka's names
 *   subscribe NAME TOPICS                     changes its subscription to these topics
 *   stop NAME                                 closes it: a dynamic member leaves its group, a static one does not
 *
 * Lines out: "closed NAME" when a consumer has been closed, requested or not; before it "failed NAME EXCEPTION" if it
 * was not requested. "assigned", "revoked" or "lost NAME NANOS PARTITIONS" when the client says so: the time of the
 * machine's steady clock, and TOPIC:PARTITION by ",". The end of the input ends the program and every member with it, as in a crash.
 */
public final class GroupMembers {
    private static final long SLOW_MS = 2_000;
    private static final Duration POLL = Duration.ofMillis(200);
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final Map<String, Member> MEMBERS = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            if (fields[0].equals("start")) {
                Member member = new Member(fields);
                MEMBERS.put(fields[1], member);
                Thread thread = new Thread(member, fields[1]);
                thread.setDaemon(true);
                thread.start();
            } else if (fields[0].equals("subscribe")) {
                Member member = MEMBERS.get(fields[1]);
                if (member != null) {
                    member.wanted = List.of(fields[2].split(","));
                }
            } else if (fields[0].equals("stop")) {
                Member member = MEMBERS.get(fields[1]);
                if (member != null) {
                    member.stop();
                }
            } else {
                throw new IllegalArgumentException(line);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    /** Range, by a leader that takes its time: meanwhile another member can join, and its assignment comes too late. */
    public static final class SlowRange extends RangeAssignor {
        @Override
        public GroupAssignment assign(Cluster metadata, GroupSubscription subscriptions) {
            try {
                Thread.sleep(SLOW_MS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
            return super.assign(metadata, subscriptions);
        }
    }

    private static final class Member implements Runnable, ConsumerRebalanceListener {
        private final String name;
        private final List<String> topics;
        private final Properties settings = new Properties();
        private volatile boolean leaving;
        private volatile List<String> wanted;
        private volatile KafkaConsumer<byte[], byte[]> consumer;

        private Member(String[] fields) {
            name = fields[1];
            topics = List.of(fields[2].split(","));
            for (int i = 3; i < fields.length; i += 2) {
                settings.put(fields[i], fields[i + 1]);
            }
        }

        private void stop() {
            leaving = true;
            KafkaConsumer<byte[], byte[]> running = consumer;
            if (running != null) {
                running.wakeup();
            }
        }

        private void subscribe(KafkaConsumer<byte[], byte[]> made) throws ReflectiveOperationException {
            if (!topics.get(0).startsWith("~")) {
                made.subscribe(topics, this);
                return;
            }
            // By name, because older releases, which this program also runs with, do not have this class.
            Class<?> pattern = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
            Object regex = pattern.getConstructor(String.class).newInstance(topics.get(0).substring(1));
            KafkaConsumer.class.getMethod("subscribe", pattern).invoke(made, regex);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            tell("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            tell("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            tell("lost", partitions);
        }

        private void tell(String word, Collection<TopicPartition> partitions) {
            String places = partitions.stream().map(p -> p.topic() + ":" + p.partition()).collect(Collectors.joining(","));
            OUT.println(word + "\t" + name + "\t" + System.nanoTime() + "\t" + places);
        }

        @Override
        public void run() {
            ByteArrayDeserializer bytes = new ByteArrayDeserializer();
            try (KafkaConsumer<byte[], byte[]> made = new KafkaConsumer<>(settings, bytes, bytes)) {
                consumer = made;
                subscribe(made);
                while (!leaving) {
                    List<String> others = wanted;
                    if (others != null) {
                        wanted = null;
                        made.subscribe(others, this);
                    }
                    made.poll(POLL);
                }
            } catch (WakeupException wanted) {
                // (only `stop` wakes)
            } catch (Exception failed) {
                OUT.println("failed\t" + name + "\t" + failed.toString().replaceAll("\\s+", " "));
            } finally {
                MEMBERS.remove(name);
                OUT.println("closed\t" + name);
            }
        }
    }
}

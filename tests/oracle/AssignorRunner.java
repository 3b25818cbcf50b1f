import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Runs Kafka's own client assignors, one case per line in, one answer per line out, in order.
 *
 * Runs on the class path of one kafka-clients release (2.4 or newer); compiled once for all of them (java_classes.py).
 * Texts are those of Lines.java. A line is
 *
 *   strategy TAB topics TAB members
 *   topics:   topic ":" count [":" racks of partition 0 "," racks of partition 1 ...], joined by ";"; racks by "+"
 *   members:  id ":" instance ":" rack ":" topics ":" owned ":" generation ":" user data, joined by ";", in record
 *             order; topics by ","; owned as topic "=" partition by ","; generation a number or "-"; user data hex
 *
 * An answer is id ":" topic "=" partition "," ... joined by ";", in the order of the assignor's lists (members in
 * the order of the line), or "!" exception ":" message. A fresh assignor for each case, because some have state.
 */
public final class AssignorRunner {
    private static final Constructor<Subscription> WITH_GENERATION = withGeneration();

    public static void main(String[] arguments) throws Exception {
        Lines.answer(fields -> {
            try {
                return answer(fields);
            } catch (Exception thrown) {
                return Lines.thrown(thrown);
            }
        });
    }

    private static String answer(String[] fields) throws Exception {
        ConsumerPartitionAssignor assignor = assignor(fields[0]);
        List<String> order = new ArrayList<>();
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (String member : Lines.split(fields[2], ";")) {
            String[] parts = member.split(":", -1);
            String id = Lines.text(parts[0]);
            order.add(id);
            subscriptions.put(id, subscription(parts));
        }
        Map<String, Assignment> result =
            assignor.assign(cluster(fields[1]), new GroupSubscription(subscriptions)).groupAssignment();
        StringBuilder answer = new StringBuilder();
        for (String id : order) {
            answer.append(answer.length() == 0 ? "" : ";").append(Lines.hex(id)).append(":");
            String comma = "";
            for (TopicPartition partition : result.get(id).partitions()) {
                answer.append(comma).append(Lines.hex(partition.topic())).append("=").append(partition.partition());
                comma = ",";
            }
        }
        return answer.toString();
    }

    private static ConsumerPartitionAssignor assignor(String strategy) throws Exception {
        String name = switch (strategy) {
            case "range" -> "RangeAssignor";
            case "roundrobin" -> "RoundRobinAssignor";
            case "sticky" -> "StickyAssignor";
            case "cooperative-sticky" -> "CooperativeStickyAssignor";
            default -> throw new IllegalArgumentException(strategy);
        };
        Class<?> found = Class.forName("org.apache.kafka.clients.consumer." + name);
        return (ConsumerPartitionAssignor) found.getDeclaredConstructor().newInstance();
    }

    private static Subscription subscription(String[] parts) throws Exception {
        List<String> topics = new ArrayList<>();
        for (String topic : Lines.split(parts[3], ",")) {
            topics.add(Lines.text(topic));
        }
        List<TopicPartition> owned = new ArrayList<>();
        for (String pair : Lines.split(parts[4], ",")) {
            String[] both = pair.split("=", -1);
            owned.add(new TopicPartition(Lines.text(both[0]), Integer.parseInt(both[1])));
        }
        ByteBuffer userData = parts[6].equals("-") ? null : ByteBuffer.wrap(HexFormat.of().parseHex(parts[6]));
        int generation = parts[5].equals("-") ? -1 : Integer.parseInt(parts[5]);
        Optional<String> rack = Optional.ofNullable(Lines.text(parts[2]));
        Subscription made = WITH_GENERATION == null
            ? new Subscription(topics, userData, owned)
            : WITH_GENERATION.newInstance(topics, userData, owned, generation, rack);
        made.setGroupInstanceId(Optional.ofNullable(Lines.text(parts[1])));
        return made;
    }

    private static Cluster cluster(String field) {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> infos = new ArrayList<>();
        for (String topic : Lines.split(field, ";")) {
            String[] parts = topic.split(":", -1);
            int count = Integer.parseInt(parts[1]);
            String[] racks = parts.length > 2 ? parts[2].split(",", -1) : null;
            for (int partition = 0; partition < count; partition++) {
                Node[] replicas = {};
                if (racks != null) {
                    replicas = Lines.split(racks[partition], "\\+").stream()
                        .map(rack -> nodes.computeIfAbsent(rack, r -> new Node(nodes.size(), "h", 1, Lines.text(r))))
                        .toArray(Node[]::new);
                }
                // No leader: release 2.4 looks an unknown one up and throws.
                infos.add(new PartitionInfo(Lines.text(parts[0]), partition, null, replicas, replicas));
            }
        }
        return new Cluster("c", nodes.values(), infos, Collections.emptySet(), Collections.emptySet());
    }

    @SuppressWarnings("unchecked")
    private static Constructor<Subscription> withGeneration() {
        for (Constructor<?> constructor : Subscription.class.getConstructors()) {
            if (constructor.getParameterCount() == 5) {
                return (Constructor<Subscription>) constructor; // from 3.4
            }
        }
        return null;
    }
}

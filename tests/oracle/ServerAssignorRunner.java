import java.lang.reflect.Constructor;
import java.util.AbstractSet;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/**
 * Runs the assignors of Kafka's brokers (KIP-848, KIP-932), one case per line in, one answer per line out, in order.
 *
 * Runs on the class path of one kafka-group-coordinator release (4.0 or newer); compiled once for all of them
 * (java_classes.py). Names are texts of Lines.java, topic ids are as Kafka prints them. A line is
 *
 *   strategy TAB topics TAB members
 *   topics:   name ":" id ":" count ":" initialized of existing topics, joined by ";"; initialized is "-" for all
 *             partitions, or their numbers by "+": those that a share group may be assigned (since 4.1)
 *   members:  id ":" instance ":" names by "," ":" target, joined by ";"; target as id "=" partitions by "+", by ","
 *
 * The input is built as in the coordinator (TargetAssignmentBuilder, Assignment.fromRecord, ModernGroup, TopicIds),
 * except that a member's topics are in the order of the line.
 *
 * An answer is member ":" target as above, joined by ";", in the order of the maps; or "!" exception ":" message.
 */
public final class ServerAssignorRunner {
    private static final Constructor<?> MEMBER = constructor("MemberSubscriptionAndAssignmentImpl");
    private static final Constructor<?> ASSIGNMENT = constructor("Assignment");
    private static final Constructor<?> SPEC = constructor("GroupSpecImpl");

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
        Map<String, Uuid> ids = new LinkedHashMap<>();
        Map<Uuid, Integer> counts = new HashMap<>();
        Map<Uuid, Set<Integer>> assignable = new HashMap<>();
        for (String topic : Lines.split(fields[1], ";")) {
            String[] parts = topic.split(":", -1);
            Uuid id = Uuid.fromString(parts[1]);
            ids.put(Lines.text(parts[0]), id);
            counts.put(id, Integer.parseInt(parts[2]));
            assignable.put(id, parts[3].equals("-")
                ? IntStream.range(0, Integer.parseInt(parts[2])).boxed().collect(Collectors.toSet())
                : Set.copyOf(numbers(parts[3])));
        }
        Map<String, Object> members = new HashMap<>();
        Map<String, Integer> subscribers = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        for (String member : Lines.split(fields[2], ";")) {
            String[] parts = member.split(":", -1);
            String id = Lines.text(parts[0]);
            Set<String> names = new LinkedHashSet<>();
            for (String name : Lines.split(parts[2], ",")) {
                names.add(Lines.text(name));
            }
            names.forEach(name -> subscribers.merge(name, 1, Integer::sum));
            Map<Uuid, Set<Integer>> target = Lines.split(parts[3], ",").stream().map(entry -> entry.split("=", -1)).collect(
                Collectors.toMap(both -> Uuid.fromString(both[0]), both -> new HashSet<>(numbers(both[1]))));
            target.forEach((topic, partitions) -> partitions.forEach(partition ->
                inverted.computeIfAbsent(topic, __ -> new HashMap<>()).put(partition, id)));
            members.put(id, member(Optional.ofNullable(Lines.text(parts[1])), new Subscribed(names, ids), ASSIGNMENT.newInstance(target)));
        }
        SubscriptionType type = subscribers.values().stream().allMatch(count -> count == members.size())
            ? SubscriptionType.HOMOGENEOUS
            : SubscriptionType.HETEROGENEOUS;
        boolean shares = fields[0].equals("server-simple");
        GroupSpec spec = (GroupSpec) (SPEC.getParameterCount() == 3
            ? SPEC.newInstance(java.util.Collections.unmodifiableMap(members), type, inverted)
            : SPEC.newInstance(java.util.Collections.unmodifiableMap(members), type, inverted,
                shares ? Optional.of(assignable) : Optional.empty()));
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return counts.getOrDefault(topic, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
        GroupAssignment result = assignor(fields[0]).assign(spec, describer);
        StringBuilder answer = new StringBuilder();
        for (Map.Entry<String, MemberAssignment> member : result.members().entrySet()) {
            answer.append(answer.length() == 0 ? "" : ";").append(Lines.hex(member.getKey())).append(":");
            String comma = "";
            for (Map.Entry<Uuid, Set<Integer>> topic : member.getValue().partitions().entrySet()) {
                answer.append(comma).append(topic.getKey()).append("=")
                    .append(topic.getValue().stream().map(String::valueOf).collect(Collectors.joining("+")));
                comma = ",";
            }
        }
        return answer.toString();
    }

    private static PartitionAssignor assignor(String strategy) throws Exception {
        return switch (strategy) {
            case "server-range" -> new RangeAssignor();
            case "server-uniform" -> new UniformAssignor();
            default -> new SimpleAssignor();
        };
    }

    /** Like the coordinator's TopicIds: names without a topic count in the size and are skipped otherwise. */
    private static final class Subscribed extends AbstractSet<Uuid> {
        private final Set<String> names;
        private final List<Uuid> found = new ArrayList<>();

        Subscribed(Set<String> names, Map<String, Uuid> ids) {
            this.names = names;
            names.stream().map(ids::get).filter(java.util.Objects::nonNull).forEach(found::add);
        }

        @Override
        public int size() {
            return names.size();
        }

        @Override
        public boolean contains(Object id) {
            return found.contains(id);
        }

        @Override
        public Iterator<Uuid> iterator() {
            return found.iterator();
        }
    }

    private static Object member(Optional<String> instance, Set<Uuid> topics, Object assignment) throws Exception {
        return MEMBER.newInstance(Optional.empty(), instance, topics, assignment);
    }

    private static Constructor<?> constructor(String name) {
        try {
            Constructor<?>[] all = Class.forName("org.apache.kafka.coordinator.group.modern." + name).getConstructors();
            Constructor<?> longest = all[0];
            for (Constructor<?> one : all) {
                longest = one.getParameterCount() > longest.getParameterCount() ? one : longest;
            }
            return longest;
        } catch (ClassNotFoundException gone) {
            throw new IllegalStateException(gone);
        }
    }

    private static List<Integer> numbers(String joined) {
        List<Integer> numbers = new ArrayList<>();
        for (String number : joined.isEmpty() ? new String[0] : joined.split("\\+", -1)) {
            numbers.add(Integer.parseInt(number));
        }
        return numbers;
    }
}

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Times an assignor of Kafka's brokers (KIP-848) on the groups of tests/benchmarks/assign_server.py.
 *
 * java -cp JARS AssignServerTimes.java CLASS MEMBERS TOPICS PARTITIONS BUCKETS RUNS
 *
 * Member m subscribes to bucket m % BUCKETS of the topics. Prints two lines: for the first assignment and for the one
 * after a member joined, the best of RUNS in ms (after as many to warm up) and a checksum of the result. The second
 * line is left out for the class that ignores earlier targets. Data that the coordinator keeps between epochs, the
 * members' sets and the owners by partition, are prepared outside the measured time.
 */
public final class AssignServerTimes {
    public static void main(String[] arguments) throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.coordinator.group.assignor." + arguments[0]);
        int members = Integer.parseInt(arguments[1]);
        int topics = Integer.parseInt(arguments[2]);
        int partitions = Integer.parseInt(arguments[3]);
        int buckets = Integer.parseInt(arguments[4]);
        int runs = Integer.parseInt(arguments[5]);
        Map<Uuid, Integer> numbers = new LinkedHashMap<>();
        for (int topic = 0; topic < topics; topic++) {
            numbers.put(id(topic), topic);
        }
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return numbers.containsKey(topic) ? partitions : -1;
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
        Map<String, MemberAssignment> first = time(type, describer, numbers, members, buckets, null, runs);
        if (arguments[0].startsWith("Uniform")) {
            time(type, describer, numbers, members, buckets, first, runs);
        }
    }

    private static Map<String, MemberAssignment> time(
        Class<?> type, SubscribedTopicDescriber describer, Map<Uuid, Integer> numbers, int members, int buckets,
        Map<String, MemberAssignment> before, int runs
    ) throws Exception {
        GroupAssignment result = null;
        double best = Double.MAX_VALUE;
        for (int run = 0; run < 2 * runs; run++) {
            Map<String, MemberSubscriptionAndAssignmentImpl> group = new HashMap<>();
            Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
            for (int member = 0; member < members; member++) {
                String id = "member" + member;
                Map<Uuid, Set<Integer>> target = before == null ? Map.of() : target(before.get(id), numbers);
                target.forEach((topic, all) ->
                    all.forEach(one -> owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(one, id)));
                group.put(id, member(bucket(numbers, member % buckets, buckets), target));
            }
            if (before != null) {
                group.put("newcomer", member(bucket(numbers, 0, buckets), Map.of()));
            }
            SubscriptionType kind = buckets == 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
            GroupSpecImpl spec = new GroupSpecImpl(group, kind, owners, Optional.empty());
            ConsumerGroupPartitionAssignor assignor =
                (ConsumerGroupPartitionAssignor) type.getDeclaredConstructor().newInstance();
            long start = System.nanoTime();
            result = assignor.assign(spec, describer);
            if (run >= runs) {
                best = Math.min(best, (System.nanoTime() - start) / 1e6);
            }
        }
        System.out.println(best + " " + Long.toUnsignedString(checksum(result, numbers)));
        return result.members();
    }

    /** Pseudo-random bits, the same here and in Python. */
    private static Uuid id(int topic) {
        return new Uuid((topic + 1) * 0x9E3779B97F4A7C15L, (topic + 1) * 0xC2B2AE3D27D4EB4FL);
    }

    private static MemberSubscriptionAndAssignmentImpl member(Set<Uuid> topics, Map<Uuid, Set<Integer>> target) {
        return new MemberSubscriptionAndAssignmentImpl(Optional.empty(), Optional.empty(), topics, new Assignment(target));
    }

    private static Set<Uuid> bucket(Map<Uuid, Integer> numbers, int bucket, int buckets) {
        List<Uuid> all = new ArrayList<>(numbers.keySet());
        return new LinkedHashSet<>(all.subList(bucket * all.size() / buckets, (bucket + 1) * all.size() / buckets));
    }

    /** The target as a coordinator reads it from a record that lists topics and partitions in order. */
    private static Map<Uuid, Set<Integer>> target(MemberAssignment assigned, Map<Uuid, Integer> numbers) {
        Map<Uuid, Set<Integer>> target = new HashMap<>();
        List<Uuid> topics = new ArrayList<>(assigned.partitions().keySet());
        topics.sort((one, other) -> numbers.get(one) - numbers.get(other));
        for (Uuid topic : topics) {
            target.put(topic, new HashSet<>(new ArrayList<>(new TreeSet<>(assigned.partitions().get(topic)))));
        }
        return target;
    }

    private static long checksum(GroupAssignment result, Map<Uuid, Integer> numbers) {
        long sum = 0;
        for (Map.Entry<String, MemberAssignment> entry : result.members().entrySet()) {
            String id = entry.getKey();
            long size = result.members().size();
            long member = id.equals("newcomer") ? size : Long.parseLong(id.substring("member".length())) + 1;
            for (Map.Entry<Uuid, Set<Integer>> topic : entry.getValue().partitions().entrySet()) {
                for (int partition : topic.getValue()) {
                    sum += member * (numbers.get(topic.getKey()) * 1_000_003L + partition + 1);
                }
            }
        }
        return sum;
    }
}

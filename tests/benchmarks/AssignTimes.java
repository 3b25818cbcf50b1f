import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Times a Kafka client assignor on the groups of tests/benchmarks/assign.py.
 *
 * java -cp JARS AssignTimes.java CLASS MEMBERS TOPICS PARTITIONS BUCKETS RUNS [LIMIT]
 *
 * Member m subscribes to bucket m % BUCKETS of the topics. Prints two lines: for the first assignment and for the one
 * after a member joined, the best of RUNS in ms (after as many to warm up) and a checksum of the result. The second
 * line is left out for classes that ignore earlier assignments. With LIMIT a join is run only once, without warming up,
 * and its line is left out if that takes longer than LIMIT seconds.
 */
public final class AssignTimes {
    public static void main(String[] arguments) throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.clients.consumer." + arguments[0]);
        int members = Integer.parseInt(arguments[1]);
        int topics = Integer.parseInt(arguments[2]);
        int partitions = Integer.parseInt(arguments[3]);
        int buckets = Integer.parseInt(arguments[4]);
        int runs = Integer.parseInt(arguments[5]);
        List<PartitionInfo> infos = new ArrayList<>();
        for (int topic = 0; topic < topics; topic++) {
            for (int partition = 0; partition < partitions; partition++) {
                infos.add(new PartitionInfo("topic" + topic, partition, null, null, null));
            }
        }
        Cluster cluster = new Cluster("c", Collections.emptyList(), infos, Collections.emptySet(), Collections.emptySet());
        Map<String, Assignment> first = time(type, cluster, members, topics, buckets, null, runs);
        if (arguments[0].contains("Sticky")) {
            if (arguments.length > 6) {
                endAfter(Integer.parseInt(arguments[6]));
                runs = 1;
            }
            time(type, cluster, members, topics, buckets, first, runs);
        }
    }

    private static void endAfter(int seconds) {
        Thread thread = new Thread(() -> {
            try {
                Thread.sleep(seconds * 1000L);
            } catch (InterruptedException never) {
                throw new IllegalStateException(never);
            }
            Runtime.getRuntime().halt(0);
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static Map<String, Assignment> time(
        Class<?> type, Cluster cluster, int members, int topics, int buckets, Map<String, Assignment> before, int runs
    ) throws Exception {
        Map<String, Assignment> result = null;
        double best = Double.MAX_VALUE;
        int warmUps = runs > 1 ? runs : 0;
        for (int run = 0; run < warmUps + runs; run++) {
            Map<String, Subscription> subscriptions = new HashMap<>();
            for (int member = 0; member < members; member++) {
                String id = "member" + member;
                subscriptions.put(id, subscription(member, topics, buckets, before == null ? null : before.get(id)));
            }
            if (before != null) {
                subscriptions.put("newcomer", subscription(0, topics, buckets, null));
            }
            ConsumerPartitionAssignor assignor = (ConsumerPartitionAssignor) type.getDeclaredConstructor().newInstance();
            long start = System.nanoTime();
            result = assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
            if (run >= warmUps) {
                best = Math.min(best, (System.nanoTime() - start) / 1e6);
            }
        }
        System.out.println(best + " " + Long.toUnsignedString(checksum(result)));
        return result;
    }

    private static Subscription subscription(int member, int topics, int buckets, Assignment before) {
        List<String> names = new ArrayList<>();
        int bucket = member % buckets;
        for (int topic = bucket * topics / buckets; topic < (bucket + 1) * topics / buckets; topic++) {
            names.add("topic" + topic);
        }
        Collections.sort(names);
        List<TopicPartition> owned = before == null ? new ArrayList<>() : new ArrayList<>(before.partitions());
        owned.sort(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition));
        int generation = before == null ? -1 : 1;
        ByteBuffer userData = ByteBuffer.allocate(4).putInt(0, generation);
        return new Subscription(names, userData, owned, generation, Optional.empty());
    }

    private static long checksum(Map<String, Assignment> result) {
        long sum = 0;
        for (Map.Entry<String, Assignment> entry : result.entrySet()) {
            String id = entry.getKey();
            long member = id.equals("newcomer") ? result.size() : Long.parseLong(id.substring("member".length())) + 1;
            for (TopicPartition partition : entry.getValue().partitions()) {
                long topic = Long.parseLong(partition.topic().substring("topic".length()));
                sum += member * (topic * 1_000_003 + partition.partition() + 1);
            }
        }
        return sum;
    }
}

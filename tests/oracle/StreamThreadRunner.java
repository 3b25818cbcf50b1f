import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;

/**
 * Encodes what threads of Kafka Streams and their leader put into user data, one case per line in, one answer per line out.
 *
 * Runs on the class path of Kafka Streams. A line has a version, a process id, an endpoint, tags (key "=" value by ","), offset sums (task "=" sum by ","), active
 * tasks by ",", standby tasks by ",", hosts by ",", an error and the time of the next rebalance, with TABs between them. A
 * task is subtopology "_" partition, with a named topology and "__" before it where it has one; its partitions are those
 * of a topic "t" and its subtopology. An answer is the hex of both values.
 */
public final class StreamThreadRunner {
    public static void main(String[] arguments) throws Exception {
        Lines.answer(StreamThreadRunner::answer);
    }

    private static String answer(String[] fields) {
        int version = Integer.parseInt(fields[0]);
        Map<String, String> tags = new LinkedHashMap<>();
        Lines.split(fields[3], ",").forEach(tag -> tags.put(tag.split("=")[0], tag.split("=")[1]));
        Map<TaskId, Long> sums = new LinkedHashMap<>();
        Lines.split(fields[4], ",").forEach(sum -> sums.put(task(sum.split("=")[0]), Long.parseLong(sum.split("=")[1])));
        SubscriptionInfo subscription = new SubscriptionInfo(
            version, version < 3 ? -1 : 11, new ProcessId(UUID.fromString(fields[1])), fields[2].isEmpty() ? null : fields[2], sums,
            (byte) 7, version < 9 ? 0 : Integer.parseInt(fields[8]), tags);
        List<TaskId> active = new ArrayList<>();
        Lines.split(fields[5], ",").forEach(task -> active.add(task(task)));
        Map<TaskId, Set<TopicPartition>> standby = new LinkedHashMap<>();
        Lines.split(fields[6], ",").forEach(task -> standby.put(task(task), partitions(List.of(task(task)))));
        Map<HostInfo, Set<TopicPartition>> hosts = new LinkedHashMap<>();
        Lines.split(fields[7], ",").forEach(host -> hosts.put(new HostInfo(host, 8080), partitions(active)));
        AssignmentInfo assignment = new AssignmentInfo(version, 11, active, standby, hosts, hosts, Integer.parseInt(fields[8]));
        if (!fields[9].isEmpty()) {
            assignment.setNextRebalanceTime(Long.parseLong(fields[9]));
        }
        return hex(subscription.encode()) + "\t" + hex(assignment.encode());
    }

    private static Set<TopicPartition> partitions(List<TaskId> tasks) {
        Set<TopicPartition> partitions = new HashSet<>();
        tasks.forEach(task -> partitions.add(new TopicPartition("t" + task.subtopology(), task.partition())));
        return partitions;
    }

    private static TaskId task(String text) {
        return TaskId.parse(text);
    }

    private static String hex(ByteBuffer encoded) {
        return Lines.hex(encoded.rewind());
    }
}

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Instances of one Kafka Streams application with the classic protocol: counts in memory what stands in a topic, and reads
 * two others together.
 *
 * Run with FOLDER COUNTED READ READ [SETTING VALUE] ...; each line in is answered with a line:
 *
 *   start NAME THREADS    starts an instance
 *   close NAME            closes it; its members stay in the group until their session times out
 *   tasks                 by ";" CLIENT "=" ACTIVE "|" STANDBY of each thread (metadataForLocalThreads), tasks by ","; "-"
 *                         while an instance is not running
 *
 * The end of the input ends the program and every member with it, as in a crash.
 */
public final class ClassicStreams {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, KafkaStreams> instances = new HashMap<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split(" ");
            if (fields[0].equals("start")) {
                KafkaStreams instance = instance(arguments, fields[1], fields[2]);
                instances.put(fields[1], instance);
                instance.start();
                out.println("started");
            } else if (fields[0].equals("close")) {
                instances.remove(fields[1]).close(Duration.ofSeconds(20));
                out.println("closed");
            } else {
                out.println(tasks(instances));
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static KafkaStreams instance(String[] arguments, String name, String threads) {
        Properties settings = new Properties();
        for (int i = 4; i < arguments.length; i += 2) {
            settings.put(arguments[i], arguments[i + 1]);
        }
        settings.put("num.stream.threads", threads);
        settings.put("state.dir", arguments[0] + File.separator + name);
        StreamsBuilder topology = new StreamsBuilder();
        topology.stream(arguments[1], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .groupByKey(Grouped.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")));
        topology.stream(List.of(arguments[2], arguments[3]), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .foreach((key, value) -> {});
        return new KafkaStreams(topology.build(), settings);
    }

    private static String tasks(Map<String, KafkaStreams> instances) {
        List<String> threads = new ArrayList<>();
        for (KafkaStreams instance : instances.values()) {
            if (instance.state() != KafkaStreams.State.RUNNING) {
                return "-";
            }
            for (ThreadMetadata thread : instance.metadataForLocalThreads()) {
                threads.add(thread.consumerClientId() + "=" + ids(thread.activeTasks()) + "|" + ids(thread.standbyTasks()));
            }
        }
        return String.join(";", threads);
    }

    private static String ids(Set<TaskMetadata> tasks) {
        return tasks.stream().map(task -> task.taskId().toString()).sorted().collect(Collectors.joining(","));
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Runs instances of Kafka Streams applications: each thread of one is a member of a streams group (KIP-1071).
 *
 * Runs on the class path of Kafka Streams 4.2 or later. Lines in, with fields separated by tabs:
 *
 *   start NAME TOPIC [SETTING VALUE] ...      settings by Kafka's names; it reads the topic and writes nothing. With the
 *                                             setting "store" it counts the topic's records by value in a store of that
 *                                             name, in memory: a subtopology without state writes to a repartition
 *                                             topic, one with state reads it and writes a changelog
 *   stop NAME                                 closes it: its members leave their group
 *
 * Lines out: "closed NAME" when it has been closed. A thread that fails is replaced by another member. The end of the
 * input ends the program and every instance with it, as in a crash.
 */
public final class StreamsMembers {
    private static final Duration CLOSE = Duration.ofSeconds(20);
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final Map<String, KafkaStreams> INSTANCES = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws Exception {
        System.setOut(System.err); // what the libraries log
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            if (fields[0].equals("start")) {
                start(fields);
            } else {
                new Thread(() -> close(fields[1])).start();
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static void start(String[] fields) {
        Properties settings = new Properties();
        for (int i = 3; i < fields.length; i += 2) {
            settings.put(fields[i], fields[i + 1]);
        }
        String name = fields[1];
        String store = (String) settings.remove("store");
        KafkaStreams instance = new KafkaStreams(topology(fields[2], store).build(), settings);
        // As applications do that are to outlive a topic that is missing for a while.
        instance.setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.REPLACE_THREAD);
        INSTANCES.put(name, instance);
        instance.start();
    }

    private static StreamsBuilder topology(String topic, String store) {
        StreamsBuilder topology = new StreamsBuilder();
        KStream<byte[], byte[]> read = topology.stream(topic, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()));
        if (store == null) {
            read.foreach((key, value) -> {});
        } else {
            read.groupBy((key, value) -> value, Grouped.with(store, Serdes.ByteArray(), Serdes.ByteArray()))
                .count(Materialized.<byte[], Long>as(Stores.inMemoryKeyValueStore(store))
                    .withKeySerde(Serdes.ByteArray()).withValueSerde(Serdes.Long()));
        }
        return topology;
    }

    private static void close(String name) {
        KafkaStreams instance = INSTANCES.remove(name);
        if (instance != null) {
            instance.close(CLOSE);
        }
        OUT.println("closed\t" + name);
    }
}

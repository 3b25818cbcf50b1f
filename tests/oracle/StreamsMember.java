import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;

/**
 * A member of a streams group (KIP-1071): reads a topic, and writes nothing.
 *
 * Run as source on the class path of Kafka Streams 4.2 or later:
 *
 *   java -cp JARS StreamsMember.java TOPIC [SETTING VALUE] ...
 *
 * It leaves its group on SIGTERM.
 */
public final class StreamsMember {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (int i = 1; i < arguments.length; i += 2) {
            settings.put(arguments[i], arguments[i + 1]);
        }
        StreamsBuilder topology = new StreamsBuilder();
        topology.stream(arguments[0], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray())).foreach((key, value) -> {});
        KafkaStreams member = new KafkaStreams(topology.build(), settings);
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            member.close(Duration.ofSeconds(10));
            ended.countDown();
        }));
        member.start();
        ended.await();
    }
}

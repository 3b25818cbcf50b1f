import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Runs many of Kafka's own share consumers (KIP-932), each a group member in its own thread, which accepts what it reads.
 *
 * Runs on the class path of kafka-clients 4.1 or newer. Lines in and out as GroupMembers.java has them, without regular
 * expressions; a share consumer is not told of its partitions, so there are no lines about them.
 */
public final class ShareMembers {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final Map<String, Member> MEMBERS = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            Member member = fields[0].equals("start") ? new Member(fields) : MEMBERS.get(fields[1]);
            if (fields[0].equals("start")) {
                MEMBERS.put(fields[1], member);
                Thread thread = new Thread(member, fields[1]);
                thread.setDaemon(true);
                thread.start();
            } else if (member != null && fields[0].equals("subscribe")) {
                member.wanted = List.of(fields[2].split(","));
            } else if (member != null && fields[0].equals("stop")) {
                member.leaving = true;
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static final class Member implements Runnable {
        private final String name;
        private final Properties settings = new Properties();
        private volatile boolean leaving;
        private volatile List<String> wanted;

        private Member(String[] fields) {
            name = fields[1];
            wanted = List.of(fields[2].split(","));
            for (int i = 3; i < fields.length; i += 2) {
                settings.put(fields[i], fields[i + 1]);
            }
        }

        @Override
        public void run() {
            ByteArrayDeserializer bytes = new ByteArrayDeserializer();
            try (KafkaShareConsumer<byte[], byte[]> made = new KafkaShareConsumer<>(settings, bytes, bytes)) {
                while (!leaving) {
                    List<String> topics = wanted;
                    if (topics != null) {
                        wanted = null;
                        made.subscribe(topics);
                    }
                    made.poll(POLL);
                }
            } catch (Exception failed) {
                OUT.println("failed\t" + name + "\t" + failed.toString().replaceAll("\\s+", " "));
            } finally {
                MEMBERS.remove(name);
                OUT.println("closed\t" + name);
            }
        }
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group (KIP-932) with explicit acknowledgement: the first word of a record's value says what it
 * does with it.
 *
 * Run on the class path of kafka-clients 4.1 or later:
 *
 *   java -cp JARS ShareMember TOPIC,... [SETTING VALUE] ...
 *
 * "release" and "reject" are what they say; "hold" stalls for ever, with all records of its poll acquired; "once" is
 * released at its first delivery and accepted at the next; everything else is accepted. Lines out, once the broker has
 * the acknowledgement: "TOPIC PARTITION OFFSET DELIVERY WORD", and "holds" when it stalls. The end of the input closes
 * the consumer; a kill is a crash.
 */
public final class ShareMember {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static volatile boolean leaving;

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("share.acknowledgement.mode", "explicit");
        for (int i = 1; i < arguments.length; i += 2) {
            settings.put(arguments[i], arguments[i + 1]);
        }
        Thread listener = new Thread(ShareMember::awaitTheEnd);
        listener.setDaemon(true);
        listener.start();
        StringDeserializer text = new StringDeserializer();
        try (KafkaShareConsumer<String, String> member = new KafkaShareConsumer<>(settings, text, text)) {
            member.subscribe(List.of(arguments[0].split(",")));
            while (!leaving) {
                ConsumerRecords<String, String> records = member.poll(POLL);
                StringBuilder done = new StringBuilder();
                for (ConsumerRecord<String, String> record : records) {
                    String word = record.value().split(" ")[0];
                    if (word.equals("hold")) {
                        OUT.println("holds");
                        Thread.sleep(Long.MAX_VALUE);
                    }
                    AcknowledgeType type = typeOf(word, record.deliveryCount().orElse((short) 1));
                    member.acknowledge(record, type);
                    done.append(record.topic()).append(' ').append(record.partition()).append(' ');
                    done.append(record.offset()).append(' ').append(record.deliveryCount().orElse((short) -1));
                    done.append(' ').append(type).append('\n');
                }
                if (!records.isEmpty()) {
                    member.commitSync();
                    OUT.print(done);
                    OUT.flush();
                }
            }
        }
    }

    private static AcknowledgeType typeOf(String word, short delivery) {
        if (word.equals("release") || (word.equals("once") && delivery == 1)) {
            return AcknowledgeType.RELEASE;
        }
        return word.equals("reject") ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT;
    }

    private static void awaitTheEnd() {
        try {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            while (in.readLine() != null) {
                // nothing is told to a member
            }
        } catch (java.io.IOException gone) {
            // as good as the end
        }
        leaving = true;
    }
}

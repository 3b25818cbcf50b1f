import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/**
 * Members of one RocketMQ group in one JVM, told what to do line by line; each line is answered with "ok".
 *
 *   arguments: name servers, group, topics joined by ","
 *   start STRATEGY IP INSTANCE     a member IP@INSTANCE that takes messages and commits
 *   orderly STRATEGY IP INSTANCE   the same, but it takes them in order, under the broker's locks
 *   stop IP@INSTANCE               it leaves
 */
public final class RocketMqMembers {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(new PrintStream(java.io.OutputStream.nullOutputStream()));
        Map<String, DefaultMQPushConsumer> members = new LinkedHashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (!words[0].equals("stop")) {
                DefaultMQPushConsumer member = new DefaultMQPushConsumer(arguments[1], null, strategy(words[1]));
                member.setNamesrvAddr(arguments[0]);
                member.setClientIP(words[2]);
                member.setInstanceName(words[3]);
                member.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
                member.setConsumeThreadMin(1);
                member.setConsumeThreadMax(1);
                member.setPersistConsumerOffsetInterval(1000);
                // (30 s by default.)
                member.setPollNameServerInterval(Integer.getInteger("members.pollNameServerInterval", 30000));
                for (String topic : arguments[2].split(",")) {
                    member.subscribe(topic, "*");
                }
                if (words[0].equals("orderly")) {
                    member.registerMessageListener(
                        (MessageListenerOrderly) (messages, context) -> ConsumeOrderlyStatus.SUCCESS);
                } else {
                    member.registerMessageListener(
                        (MessageListenerConcurrently) (messages, context) -> ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
                }
                member.start();
                members.put(words[2] + "@" + words[3], member);
            } else {
                members.remove(words[1]).shutdown();
            }
            out.println("ok");
            out.flush();
        }
        for (DefaultMQPushConsumer member : members.values()) {
            member.shutdown();
        }
    }

    private static AllocateMessageQueueStrategy strategy(String name) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            default:
                return new AllocateMessageQueueConsistentHash();
        }
    }
}

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Runs RocketMQ's own allocation strategies, one case per line in, one answer per line out, in order.
 *
 * Runs on the class path of one rocketmq-client release.
 * Texts are those of Lines.java. A line is
 *
 *   strategy TAB presort TAB virtual nodes TAB config list TAB rooms TAB separator TAB queues TAB clients TAB callers
 *   strategy:  the expected getName(); presort: 1 to sort queues and clients like RebalanceImpl
 *   queues, config list:  topic ":" broker ":" id, joined by ";"; a list "-" is not set
 *   rooms, clients, callers:  texts joined by ";"; the callers are the currentCIDs of the calls, in order
 *   separator:  the room of a broker or client is the text before it, or the whole name
 *
 * An answer is, per caller, queues as above, "-" for null, or "!" exception ":" message; joined by "|".
 */
public final class RocketMqRunner {
    public static void main(String[] arguments) throws Exception {
        Lines.answer(RocketMqRunner::answer);
    }

    private static String answer(String[] fields) {
        List<MessageQueue> queues = queues(fields[6]);
        List<String> clients = texts(fields[7]);
        if (fields[1].equals("1")) {
            Collections.sort(queues);
            Collections.sort(clients);
        }
        List<String> answers = new ArrayList<>();
        for (String caller : texts(fields[8])) {
            String answer;
            try {
                AllocateMessageQueueStrategy strategy = strategy(fields[0], fields);
                if (!strategy.getName().equals(fields[0])) {
                    throw new IllegalStateException("its name is " + strategy.getName());
                }
                answer = written(strategy.allocate("group", caller, queues, clients));
            } catch (Exception thrown) {
                String message = thrown instanceof NullPointerException ? "" : thrown.getMessage();
                answer = "!" + thrown.getClass().getSimpleName() + ":" + Lines.hex(message);
            }
            answers.add(answer);
        }
        return String.join("|", answers);
    }

    private static AllocateMessageQueueStrategy strategy(String name, String[] fields) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return fields[2].equals("-")
                    ? new AllocateMessageQueueConsistentHash()
                    : new AllocateMessageQueueConsistentHash(Integer.parseInt(fields[2]));
            case "CONFIG":
                AllocateMessageQueueByConfig config = new AllocateMessageQueueByConfig();
                config.setMessageQueueList(queues(fields[3]));
                return config;
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom room = new AllocateMessageQueueByMachineRoom();
                room.setConsumeridcs(fields[4].equals("-") ? null : new HashSet<>(texts(fields[4])));
                return room;
            default:
                String separator = Lines.text(fields[5]);
                return new AllocateMachineRoomNearby(
                    strategy(name.substring("MACHINE_ROOM_NEARBY-".length()), fields),
                    new AllocateMachineRoomNearby.MachineRoomResolver() {
                        @Override
                        public String brokerDeployIn(MessageQueue queue) {
                            return before(queue.getBrokerName(), separator);
                        }

                        @Override
                        public String consumerDeployIn(String client) {
                            return before(client, separator);
                        }
                    });
        }
    }

    private static String before(String name, String separator) {
        int at = name.indexOf(separator);
        return at < 0 ? name : name.substring(0, at);
    }

    private static String written(List<MessageQueue> queues) {
        if (queues == null) {
            return "-";
        }
        StringBuilder joined = new StringBuilder();
        for (MessageQueue queue : queues) {
            joined.append(joined.length() == 0 ? "" : ";").append(Lines.hex(queue.getTopic())).append(":")
                .append(Lines.hex(queue.getBrokerName())).append(":").append(queue.getQueueId());
        }
        return joined.toString();
    }

    private static List<MessageQueue> queues(String joined) {
        if (joined.equals("-")) {
            return null;
        }
        List<MessageQueue> queues = new ArrayList<>();
        for (String queue : Lines.split(joined, ";")) {
            String[] parts = queue.split(":", -1);
            queues.add(new MessageQueue(Lines.text(parts[0]), Lines.text(parts[1]), Integer.parseInt(parts[2])));
        }
        return queues;
    }

    private static List<String> texts(String joined) {
        List<String> texts = new ArrayList<>();
        for (String text : Lines.split(joined, ";")) {
            texts.add(Lines.text(text));
        }
        return texts;
    }
}

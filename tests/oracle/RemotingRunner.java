import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.remoting.protocol.SerializeType;

/**
 * Writes and reads frames with RocketMQ's own classes, one case per line in, one answer per line out, in order.
 *
 * Texts are those of Lines.java. A line is one of
 *
 *   E TAB type TAB code TAB language TAB version TAB opaque TAB flag TAB remark TAB fields TAB body
 *       type:  JSON or ROCKETMQ; fields:  name ":" value, joined by ";", or "-"; body:  hex, or "-"
 *       answer:  the frame in hex
 *   D TAB frame in hex
 *       answer:  type, code, ... body as above, joined by TAB, or "!" and the exception's class
 *   B TAB queues TAB numbers
 *       queues:  topic ":" broker ":" id, joined by ";"; numbers:  ints, joined by ";"
 *       answer:  hex of a body with a map keyed by the queues, and a map keyed by the numbers
 */
public final class RemotingRunner {
    public static void main(String[] arguments) throws Exception {
        Lines.answer(fields -> switch (fields[0]) {
            case "E" -> encoded(fields);
            case "D" -> decoded(fields[1]);
            default -> body(fields);
        });
    }

    private static String encoded(String[] fields) {
        RemotingCommand command = RemotingCommand.createRequestCommand(Integer.parseInt(fields[2]), null);
        command.setSerializeTypeCurrentRPC(SerializeType.valueOf(fields[1]));
        command.setLanguage(LanguageCode.valueOf(fields[3]));
        command.setVersion(Integer.parseInt(fields[4]));
        command.setOpaque(Integer.parseInt(fields[5]));
        command.setFlag(Integer.parseInt(fields[6]));
        command.setRemark(Lines.text(fields[7]));
        if (!fields[8].equals("-")) {
            HashMap<String, String> extFields = new HashMap<>();
            for (String pair : Lines.split(fields[8], ";")) {
                String[] parts = pair.split(":");
                extFields.put(Lines.text(parts[0]), Lines.text(parts[1]));
            }
            command.setExtFields(extFields);
        }
        if (!fields[9].equals("-")) {
            command.setBody(HexFormat.of().parseHex(fields[9]));
        }
        return Lines.hex(command.encode());
    }

    private static String decoded(String frame) {
        try {
            // (Netty takes the length prefix off before they decode.)
            byte[] bytes = HexFormat.of().parseHex(frame);
            RemotingCommand command = RemotingCommand.decode(ByteBuffer.wrap(bytes, 4, bytes.length - 4).slice());
            List<String> fields = new ArrayList<>();
            if (command.getExtFields() != null) {
                for (Map.Entry<String, String> entry : new TreeMap<>(command.getExtFields()).entrySet()) {
                    fields.add(Lines.hex(entry.getKey()) + ":" + Lines.hex(entry.getValue()));
                }
            }
            return String.join("\t",
                String.valueOf(command.getSerializeTypeCurrentRPC()),
                String.valueOf(command.getCode()),
                String.valueOf(command.getLanguage()),
                String.valueOf(command.getVersion()),
                String.valueOf(command.getOpaque()),
                String.valueOf(command.getFlag()),
                Lines.hex(command.getRemark()),
                command.getExtFields() == null ? "-" : String.join(";", fields),
                command.getBody() == null ? "-" : HexFormat.of().formatHex(command.getBody()));
        } catch (Exception thrown) {
            return "!" + thrown.getClass().getSimpleName();
        }
    }

    private static String body(String[] fields) {
        Map<MessageQueue, Map<String, Long>> byQueue = new HashMap<>();
        for (String queue : Lines.split(fields[1], ";")) {
            String[] parts = queue.split(":");
            Map<String, Long> value = new HashMap<>();
            value.put("maxOffset", 7L);
            byQueue.put(new MessageQueue(Lines.text(parts[0]), Lines.text(parts[1]), Integer.parseInt(parts[2])), value);
        }
        Map<Integer, String> byNumber = new HashMap<>();
        for (String number : Lines.split(fields[2], ";")) {
            byNumber.put(Integer.parseInt(number), "a:{" + number + ":\"");
        }
        Map<String, Object> both = new HashMap<>();
        both.put("offsetTable", byQueue);
        both.put("brokerAddrs", byNumber);
        return HexFormat.of().formatHex(RemotingSerializable.toJson(both, false).getBytes(StandardCharsets.UTF_8));
    }
}

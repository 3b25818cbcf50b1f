// Kafka's own record classes behind JSON lines: one answer per line, in order.
//
//   {"do": "write", "message": "OffsetCommitValue", "version": 3, "json": {...}}   -> {"hex": "0003..."}
//   {"do": "write", "message": "OffsetCommitKey", "version": null, "json": {...}}  -> {"hex": "0001..."} (a key)
//   {"do": "read", "key": hex, "value": hex | null}                                -> {"key_type", "key", "value_version", "value"}
//   {"do": "partition", "group": text}                                             -> {"hash", "partition"} (of 50)
//   anything that the classes refuse                                               -> {"error": text}
//
// Runs on the class path of the broker.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HexFormat;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ConsumerProtocolAssignmentJsonConverter;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.message.ConsumerProtocolSubscriptionJsonConverter;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordType;

public class OffsetsLogRecords {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HexFormat HEX = HexFormat.of();
    static final short NEWEST_CONSUMER_PROTOCOL = 3;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            ObjectNode answer;
            try {
                JsonNode ask = JSON.readTree(line);
                answer = switch (ask.get("do").asText()) {
                    case "write" -> write(ask);
                    case "read" -> read(ask);
                    case "partition" -> partition(ask.get("group").asText());
                    default -> throw new IllegalArgumentException("unknown request");
                };
            } catch (Throwable refused) {
                Throwable cause = refused instanceof InvocationTargetException ? refused.getCause() : refused;
                answer = JSON.createObjectNode().put("error", cause.toString());
            }
            out.println(JSON.writeValueAsString(answer));
        }
        out.flush();
    }

    static ObjectNode write(JsonNode ask) throws Exception {
        String name = ask.get("message").asText();
        String home = name.startsWith("ConsumerProtocol")
            ? "org.apache.kafka.common.message." : "org.apache.kafka.coordinator.group.generated.";
        boolean key = ask.get("version").isNull();
        short version = key ? 0 : (short) ask.get("version").asInt();
        Message message = (Message) Class.forName(home + name + "JsonConverter")
            .getMethod("read", JsonNode.class, short.class).invoke(null, ask.get("json"), version);
        byte[] bytes = key
            ? MessageUtil.toCoordinatorTypePrefixedBytes((ApiMessage) message)
            : MessageUtil.toVersionPrefixedBytes(version, message);
        return JSON.createObjectNode().put("hex", HEX.formatHex(bytes));
    }

    static ObjectNode read(JsonNode ask) throws Exception {
        ByteBuffer keyBytes = ByteBuffer.wrap(HEX.parseHex(ask.get("key").asText()));
        short type = keyBytes.getShort();
        CoordinatorRecordType recordType = CoordinatorRecordType.fromId(type);
        ApiMessage key = recordType.newRecordKey();
        key.read(new ByteBufferAccessor(keyBytes), (short) 0);
        nothingLeft(keyBytes, "key");
        ObjectNode answer = JSON.createObjectNode();
        answer.put("key_type", type);
        answer.set("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(key));
        if (ask.get("value").isNull()) {
            answer.putNull("value_version");
            answer.putNull("value");
            return answer;
        }
        ByteBuffer valueBytes = ByteBuffer.wrap(HEX.parseHex(ask.get("value").asText()));
        short version = valueBytes.getShort();
        if (version < recordType.lowestSupportedVersion() || version > recordType.highestSupportedVersion()) {
            throw new IllegalArgumentException("unknown version " + version);
        }
        ApiMessage value = recordType.newRecordValue();
        value.read(new ByteBufferAccessor(valueBytes), version);
        nothingLeft(valueBytes, "value");
        JsonNode json = CoordinatorRecordJsonConverters.writeRecordValueAsJson(value, version);
        if (type == 2 && json.get("protocolType").asText().equals("consumer")) {
            for (JsonNode member : json.get("members")) {
                consumerProtocol((ObjectNode) member);
            }
        }
        answer.put("value_version", version);
        answer.set("value", json);
        return answer;
    }

    // Parsed with the generated classes, like ConsumerProtocol; bytes that they refuse stay base64.
    static void consumerProtocol(ObjectNode member) {
        try {
            ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(member.get("subscription").asText()));
            short version = consumerVersion(bytes);
            member.set("subscription", ConsumerProtocolSubscriptionJsonConverter.write(
                new ConsumerProtocolSubscription(new ByteBufferAccessor(bytes), version), version));
        } catch (RuntimeException opaque) {
            // Stays as it is.
        }
        try {
            ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(member.get("assignment").asText()));
            short version = consumerVersion(bytes);
            member.set("assignment", ConsumerProtocolAssignmentJsonConverter.write(
                new ConsumerProtocolAssignment(new ByteBufferAccessor(bytes), version), version));
        } catch (RuntimeException opaque) {
            // Stays as it is.
        }
    }

    static short consumerVersion(ByteBuffer bytes) {
        short version = bytes.getShort();
        if (version < 0) {
            throw new IllegalArgumentException("negative version");
        }
        return (short) Math.min(version, NEWEST_CONSUMER_PROTOCOL);
    }

    static void nothingLeft(ByteBuffer bytes, String what) {
        if (bytes.hasRemaining()) {
            throw new IllegalArgumentException(bytes.remaining() + " bytes follow the " + what);
        }
    }

    static ObjectNode partition(String group) {
        return JSON.createObjectNode().put("hash", group.hashCode()).put("partition", Utils.abs(group.hashCode()) % 50);
    }
}

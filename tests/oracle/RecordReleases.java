// Kafka's record classes of several releases, each release in its own class loader.
//
//   java -cp CLIENTS RecordReleases.java schemas      RELEASE=JAR[:JAR] ...   layouts, one line a message and version
//   java -cp CLIENTS RecordReleases.java random SEED COUNT RELEASE=JAR[:JAR] ...   COUNT records, written and printed by them
//
//   {"release", "message", "key_type", "version", "fields": [{"name", "type", "array", "nullable", "tag", "fields"}, ...]}
//   {"release", "key_type", "value_version", "unknown_tags", "hex_key", "hex_value", "key", "value"}
//
// Random records follow the class's own SCHEMAS, so they are independent of the code under test. Classes without JSON
// converters (up to 3.9) read bytes written by Kafka's schema library and must write the same bytes again; they are
// printed by the classes of the last named release, and as null if those cannot read them.
// CLIENTS: kafka-clients and Jackson; the generated classes of older releases run on them, and those of a newer one
// with its own kafka-clients as the second jar, out of which come only the classes that CLIENTS lacks.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

public class RecordReleases {
    static final ObjectMapper JSON = new ObjectMapper();
    static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    static final HexFormat HEX = HexFormat.of();
    static final int FIRST_UNKNOWN_TAG = 10_000;

    public static void main(String[] args) throws Exception {
        boolean random = args[0].equals("random");
        List<RecordType> types = new ArrayList<>();
        for (String release : Arrays.copyOfRange(args, random ? 3 : 1, args.length)) {
            String[] parts = release.split("=", 2);
            types.addAll(typesOf(parts[0], parts[1].split(File.pathSeparator)));
        }
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        if (random) {
            Random chance = new Random(Long.parseLong(args[1]));
            int count = Integer.parseInt(args[2]);
            Map<Integer, RecordType> newest = types.stream().collect(Collectors.toMap(RecordType::id, type -> type, (a, b) -> b));
            for (int i = 0; i < count; i++) {
                RecordType type = types.get(i % types.size());
                out.println(JSON.writeValueAsString(type.random(chance, newest.get(type.id()))));
            }
        } else {
            for (RecordType type : types) {
                type.layouts(out);
            }
        }
        out.flush();
    }

    // One kind of record of one release: type 1 (and 0) of the releases before 4.1 share their key class.
    record RecordType(String release, int id, short keyVersion, Class<?> key, Class<?> value) {
        void layouts(PrintStream out) throws Exception {
            line(out, key, keyVersion);
            for (short version = lowest(value); version <= newest(); version++) {
                line(out, value, version);
            }
        }

        // Only version 0 of the legacy type was ever written.
        short newest() throws Exception {
            return id == 0 ? 0 : highest(value);
        }

        void line(PrintStream out, Class<?> message, short version) throws Exception {
            ObjectNode line = JSON.createObjectNode();
            line.put("release", release).put("message", message.getSimpleName()).put("key_type", id).put("version", version);
            line.set("fields", fields(schema(message, version)));
            out.println(JSON.writeValueAsString(line));
        }

        ObjectNode random(Random chance, RecordType newest) throws Exception {
            JsonNode keyJson = struct(schema(key, keyVersion), chance, 0);
            short lowest = lowest(value);
            short version = (short) (lowest + chance.nextInt(newest() - lowest + 1));
            Schema schema = schema(value, version);
            JsonNode json = struct(schema, chance, 0);
            ObjectNode line = JSON.createObjectNode();
            line.put("release", release).put("key_type", id).put("value_version", version);
            byte[] keyBytes, bytes;
            RecordType printer = this;
            if (hasConverter(value)) {
                keyBytes = prefixed((short) id, keyVersion, fromJson(key, keyVersion, keyJson));
                ApiMessage message = fromJson(value, version, json);
                boolean fromTheFuture = hasTags(schema) && chance.nextInt(6) == 0;
                line.put("unknown_tags", fromTheFuture);
                if (fromTheFuture) {
                    for (int tag = FIRST_UNKNOWN_TAG; tag < FIRST_UNKNOWN_TAG + 1 + chance.nextInt(3); tag++) {
                        message.unknownTaggedFields().add(new RawTaggedField(tag, bytes(chance)));
                    }
                }
                bytes = MessageUtil.toVersionPrefixedBytes(version, message);
            } else {
                keyBytes = encoded((short) id, schema(key, keyVersion), keyJson);
                bytes = encoded(version, schema, json);
                line.put("unknown_tags", false);
                printer = newest;
            }
            if (!Arrays.equals(prefixed((short) id, keyVersion, read(key, keyVersion, keyBytes)), keyBytes)
                || !Arrays.equals(MessageUtil.toVersionPrefixedBytes(version, read(value, version, bytes)), bytes)) {
                throw new IllegalStateException(value + " writes other bytes than it has read");
            }
            line.put("hex_key", HEX.formatHex(keyBytes)).put("hex_value", HEX.formatHex(bytes));
            line.set("key", toJson(read(printer.key, printer.keyVersion, keyBytes), printer.keyVersion));
            try {
                line.set("value", toJson(read(printer.value, version, bytes), version));
            } catch (RuntimeException refused) {
                if (printer == this) {
                    throw refused;
                }
                line.putNull("value");
            }
            return line;
        }
    }

    static byte[] encoded(short head, Schema schema, JsonNode json) {
        Struct struct = (Struct) object(schema, json);
        ByteBuffer bytes = ByteBuffer.allocate(2 + schema.sizeOf(struct)).putShort(head);
        schema.write(bytes, struct);
        return bytes.array();
    }

    static Object object(Type type, JsonNode json) {
        if (json.isNull()) {
            return null;
        }
        if (type.isArray()) {
            Type element = type.arrayElementType().get();
            Object[] found = new Object[json.size()];
            for (int i = 0; i < found.length; i++) {
                found[i] = object(element, json.get(i));
            }
            return found;
        }
        if (type instanceof Schema schema) {
            Struct struct = new Struct(schema);
            for (BoundField bound : schema.fields()) {
                if (bound.def.type instanceof TaggedFields tagged) {
                    NavigableMap<Integer, Object> present = new TreeMap<>();
                    tagged.fields().forEach((tag, field) -> {
                        if (json.has(camel(field.name))) {
                            present.put(tag, object(field.type, json.get(camel(field.name))));
                        }
                    });
                    struct.set(bound, present);
                } else {
                    struct.set(bound, object(bound.def.type, json.get(camel(bound.def.name))));
                }
            }
            return struct;
        }
        return switch (scalar(type)) {
            case "int8" -> (byte) json.intValue();
            case "int16" -> (short) json.intValue();
            case "uint16", "int32" -> json.intValue();
            case "int64" -> json.longValue();
            case "uuid" -> Uuid.fromString(json.textValue());
            case "string" -> json.textValue();
            case "bytes" -> ByteBuffer.wrap(Base64.getDecoder().decode(json.textValue()));
            default -> throw new IllegalArgumentException("no way to write a " + type);
        };
    }

    static ApiMessage read(Class<?> message, short version, byte[] bytes) throws Exception {
        ApiMessage read = (ApiMessage) message.getConstructor().newInstance();
        ByteBuffer rest = ByteBuffer.wrap(bytes, 2, bytes.length - 2);
        read.read(new ByteBufferAccessor(rest), version);
        if (rest.hasRemaining()) {
            throw new IllegalStateException(message + " left " + rest.remaining() + " bytes");
        }
        return read;
    }

    static boolean hasConverter(Class<?> message) {
        return message.getClassLoader().getResource(message.getName().replace('.', '/') + "JsonConverter.class") != null;
    }

    static byte[] prefixed(short id, short version, ApiMessage key) {
        return ByteBuffer.wrap(MessageUtil.toVersionPrefixedBytes(version, key)).putShort(0, id).array();
    }

    // The record types of a release: every key class with its value class.
    static List<RecordType> typesOf(String release, String[] jars) throws Exception {
        URL[] urls = new URL[jars.length];
        for (int i = 0; i < jars.length; i++) {
            urls[i] = Path.of(jars[i]).toUri().toURL();
        }
        URLClassLoader loader = new URLClassLoader(urls, RecordReleases.class.getClassLoader());
        List<String> names;
        try (JarFile file = new JarFile(jars[0])) {
            names = file.stream().map(entry -> entry.getName())
                .filter(name -> name.matches("(org/apache/kafka/coordinator/(group|share)|kafka/internals)/generated/[A-Za-z]+Key\\.class"))
                .map(name -> name.substring(0, name.length() - "Key.class".length()).replace('/', '.')).sorted()
                .collect(Collectors.toList());
        }
        List<RecordType> types = new ArrayList<>();
        for (String name : names) {
            if (name.endsWith(".CoordinatorRecord") || name.contains("Transaction")) {
                continue;
            }
            Class<?> key = loader.loadClass(name + "Key");
            Class<?> value = loader.loadClass(name + "Value");
            short api = ((ApiMessage) key.getConstructor().newInstance()).apiKey();
            for (short version = lowest(key); version <= highest(key); version++) {
                // Before 4.1 the type is the key's version.
                types.add(new RecordType(release, api >= 0 ? api : version, version, key, value));
            }
        }
        return types;
    }

    static short lowest(Class<?> message) throws Exception {
        return message.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
    }

    static short highest(Class<?> message) throws Exception {
        return message.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
    }

    static Schema schema(Class<?> message, short version) throws Exception {
        return ((Schema[]) message.getField("SCHEMAS").get(null))[version];
    }

    static ApiMessage fromJson(Class<?> message, short version, JsonNode json) throws Exception {
        return (ApiMessage) call(message, "read", new Class<?>[] {JsonNode.class, short.class}, json, version);
    }

    static JsonNode toJson(ApiMessage message, short version) throws Exception {
        return (JsonNode) call(message.getClass(), "write", new Class<?>[] {message.getClass(), short.class}, message, version);
    }

    static Object call(Class<?> message, String name, Class<?>[] types, Object... arguments) throws Exception {
        Class<?> converter = message.getClassLoader().loadClass(message.getName() + "JsonConverter");
        try {
            return converter.getMethod(name, types).invoke(null, arguments);
        } catch (InvocationTargetException refused) {
            throw new IllegalStateException(name + " " + message + " " + arguments[0], refused.getCause());
        }
    }

    static ArrayNode fields(Schema schema) {
        ArrayNode found = JSON.createArrayNode();
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                tagged.fields().forEach((tag, field) -> found.add(field(field, tag)));
            } else {
                found.add(field(bound.def, null));
            }
        }
        return found;
    }

    static ObjectNode field(Field field, Integer tag) {
        Type element = field.type.arrayElementType().orElse(field.type);
        ObjectNode found = JSON.createObjectNode().put("name", camel(field.name)).put("tag", tag);
        found.put("array", field.type.isArray()).put("nullable", field.type.isNullable());
        if (element instanceof Schema schema) {
            found.put("type", "struct").set("fields", fields(schema));
        } else {
            found.put("type", scalar(element)).putNull("fields");
        }
        return found;
    }

    static String scalar(Type type) {
        return type.toString().toLowerCase().replace("compact_", "").replace("nullable_", "");
    }

    static boolean hasTags(Schema schema) {
        return Arrays.stream(schema.fields()).anyMatch(bound -> bound.def.type instanceof TaggedFields);
    }

    static ObjectNode struct(Schema schema, Random chance, int depth) {
        ObjectNode found = JSON.createObjectNode();
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (Map.Entry<Integer, Field> entry : tagged.fields().entrySet()) {
                    if (chance.nextInt(3) > 0) {
                        found.set(camel(entry.getValue().name), value(entry.getValue().type, chance, depth));
                    }
                }
            } else {
                JsonNode chosen = value(bound.def.type, chance, depth);
                if (bound.def.name.equals("partition") && depth == 0) {
                    // In a key: no topic has a negative partition.
                    chosen = NODES.numberNode(chosen.intValue() & Integer.MAX_VALUE);
                }
                found.set(camel(bound.def.name), chosen);
            }
        }
        return found;
    }

    static JsonNode value(Type type, Random chance, int depth) {
        if (type.isNullable() && chance.nextInt(4) == 0) {
            return NODES.nullNode();
        }
        if (type.isArray()) {
            // With 127 elements the varint of the count plus one gets a second byte; 126 still fit into one.
            int size = depth == 0 && chance.nextInt(150) == 0 ? 125 + chance.nextInt(4) : chance.nextInt(depth > 0 ? 3 : 4);
            ArrayNode found = JSON.createArrayNode();
            for (int i = 0; i < size; i++) {
                found.add(value(type.arrayElementType().get(), chance, depth + 1));
            }
            return found;
        }
        if (type instanceof Schema schema) {
            return struct(schema, chance, depth + 1);
        }
        return switch (scalar(type)) {
            case "int8" -> NODES.numberNode((byte) integer(chance, 8));
            case "int16" -> NODES.numberNode((short) integer(chance, 16));
            case "uint16" -> NODES.numberNode((int) integer(chance, 16) & 0xFFFF);
            case "int32" -> NODES.numberNode((int) integer(chance, 32));
            case "int64" -> NODES.numberNode(integer(chance, 64));
            case "uuid" -> NODES.textNode((chance.nextInt(8) == 0 ? Uuid.ZERO_UUID : new Uuid(chance.nextLong(), chance.nextLong())).toString());
            case "string" -> NODES.textNode(text(chance));
            case "bytes" -> NODES.textNode(Base64.getEncoder().encodeToString(bytes(chance)));
            default -> throw new IllegalArgumentException("no way to fill a " + type);
        };
    }

    static long integer(Random chance, int bits) {
        return switch (chance.nextInt(6)) {
            case 0 -> 0;
            case 1 -> -1;
            case 2 -> 1L << (bits - 1);
            case 3 -> (1L << (bits - 1)) - 1;
            default -> chance.nextLong() >> (64 - bits) >> chance.nextInt(bits);
        };
    }

    static int size(Random chance) {
        return switch (chance.nextInt(24)) {
            case 0, 1 -> 0;
            case 2 -> 125 + chance.nextInt(4);
            case 3 -> chance.nextInt(100) == 0 ? 16_382 + chance.nextInt(4) : chance.nextInt(300);
            default -> 1 + chance.nextInt(8);
        };
    }

    static String text(Random chance) {
        String letters = chance.nextInt(4) == 0 ? "aé€ß 中\u0000\"\\" : "abcdefghij-._0123456789";
        StringBuilder text = new StringBuilder();
        for (int i = size(chance); i > 0; i--) {
            text.append(letters.charAt(chance.nextInt(letters.length())));
        }
        return chance.nextInt(20) == 0 ? text + "🦊" : text.toString();
    }

    static byte[] bytes(Random chance) {
        byte[] bytes = new byte[size(chance)];
        chance.nextBytes(bytes);
        return bytes;
    }

    static String camel(String snake) {
        StringBuilder camel = new StringBuilder();
        for (String word : snake.split("_")) {
            camel.append(camel.isEmpty() ? word : Character.toUpperCase(word.charAt(0)) + word.substring(1));
        }
        return camel.toString();
    }
}

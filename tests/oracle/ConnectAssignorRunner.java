import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.message.JoinGroupResponseData.JoinGroupResponseMember;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.runtime.distributed.ConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.EagerAssignor;
import org.apache.kafka.connect.runtime.distributed.ExtendedAssignment;
import org.apache.kafka.connect.runtime.distributed.ExtendedWorkerState;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator.ConnectorsAndTasks;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.KafkaConfigBackingStore;
import org.apache.kafka.connect.util.Callback;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Runs the assignors and the protocol classes of Kafka Connect, one case per line in, one answer per line out.
 *
 * Runs on the class path of one connect-runtime release (3.4 or newer). Names are texts of Lines.java; a unit
 * is name "/" number, -1 for the connector itself; units are joined by "+".
 *
 *   deal TAB chain TAB now TAB max delay TAB led before (0, 1) TAB generation TAB connectors TAB workers
 *     connectors: name ":" tasks by ","; workers: id "=" units by ","; the chain's leader is made at its first line
 *     answer: delay TAB worker "=" started "|" revoked, by ","
 *   eager TAB connectors TAB workers (ids by ",")
 *     answer: worker "=" units, by ","
 *   state TAB version TAB url TAB offset TAB assignment, or "-" for a worker without one
 *   assignment TAB assignment
 *     assignment: version ";" error ";" leader ";" url ";" offset ";" units ";" revoked ";" delay
 *     answer: the hex of the bytes
 *   config TAB records, key "=" value, by ","
 *     value: "null", or fields as name ":" text by "+", an empty text for a map
 *     answer: connector ":" tasks ":" target state, by ","
 */
public final class ConnectAssignorRunner {
    private static final Map<String, IncrementalCooperativeAssignor> LEADERS = new HashMap<>();
    private static final Map<String, Integer> GENERATIONS = new HashMap<>();
    private static long now;

    public static void main(String[] arguments) throws Exception {
        Lines.answer(ConnectAssignorRunner::answer);
    }

    private static String answer(String[] fields) throws Exception {
        switch (fields[0]) {
            case "deal":
                return deal(fields);
            case "eager":
                return eager(fields);
            case "state":
                short version = Short.parseShort(fields[1]);
                String url = Lines.text(fields[2]);
                long offset = Long.parseLong(fields[3]);
                if (version == 0) {
                    return Lines.hex(ConnectProtocol.serializeMetadata(new ConnectProtocol.WorkerState(url, offset)));
                }
                ExtendedAssignment last = fields[4].equals("-") ? null : assignment(fields[4]);
                ExtendedWorkerState state = new ExtendedWorkerState(url, offset, last);
                return Lines.hex(IncrementalCooperativeConnectProtocol.serializeMetadata(state, version == 2));
            case "config":
                return config(Lines.split(fields[1], ","));
            default:
                ExtendedAssignment made = assignment(fields[1]);
                return Lines.hex(made.version() == 0
                    ? ConnectProtocol.serializeAssignment(made)
                    : IncrementalCooperativeConnectProtocol.serializeAssignment(made, made.version() == 2));
        }
    }

    private static String deal(String[] fields) throws Exception {
        String chain = fields[1];
        now = Long.parseLong(fields[2]);
        int maxDelay = Integer.parseInt(fields[3]);
        IncrementalCooperativeAssignor leader = LEADERS.get(chain);
        if (leader == null) {
            leader = new IncrementalCooperativeAssignor(new LogContext(), clock(), maxDelay);
            LEADERS.put(chain, leader);
        }
        int generation = Integer.parseInt(fields[5]);
        int completed = fields[4].equals("1") ? GENERATIONS.getOrDefault(chain, -1) : -2;
        GENERATIONS.put(chain, generation);
        Map<String, ConnectorsAndTasks> workers = new HashMap<>();
        for (String worker : Lines.split(fields[7], ",")) {
            String[] parts = worker.split("=", -1);
            workers.put(Lines.text(parts[0]), builder(parts[1]).build());
        }
        List<String> names = new ArrayList<>(workers.keySet());
        Method method = IncrementalCooperativeAssignor.class.getDeclaredMethod(
            "performTaskAssignment", ClusterConfigState.class, int.class, int.class, Map.class);
        method.setAccessible(true);
        Object dealt = method.invoke(leader, configured(fields[6]), completed, generation, workers);
        StringBuilder answer = new StringBuilder();
        Field delay = IncrementalCooperativeAssignor.class.getDeclaredField("delay");
        delay.setAccessible(true);
        answer.append(delay.getInt(leader)).append('\t');
        String separator = "";
        for (String name : names) {
            answer.append(separator).append(Lines.hex(name)).append('=');
            answer.append(units(of(dealt, "newlyAssignedConnectors", name), of(dealt, "newlyAssignedTasks", name)));
            answer.append('|');
            answer.append(units(of(dealt, "newlyRevokedConnectors", name), of(dealt, "newlyRevokedTasks", name)));
            separator = ",";
        }
        return answer.toString();
    }

    private static Collection<?> of(Object dealt, String what, String worker) throws Exception {
        Method method = dealt.getClass().getDeclaredMethod(what, String.class);
        method.setAccessible(true);
        return (Collection<?>) method.invoke(dealt, worker);
    }

    private static String eager(String[] fields) throws Exception {
        WorkerCoordinator coordinator = (WorkerCoordinator) made(WorkerCoordinator.class);
        Method snapshot = WorkerCoordinator.class.getDeclaredMethod("configSnapshot", ClusterConfigState.class);
        snapshot.setAccessible(true);
        snapshot.invoke(coordinator, configured(fields[1]));
        List<JoinGroupResponseMember> members = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (String worker : Lines.split(fields[2], ",")) {
            names.add(Lines.text(worker));
            byte[] bytes = IncrementalCooperativeConnectProtocol
                .serializeMetadata(new ExtendedWorkerState("http://w", 0, null), false).array();
            members.add(new JoinGroupResponseMember().setMemberId(Lines.text(worker)).setMetadata(bytes));
        }
        Map<?, ?> given = null;
        for (Method method : EagerAssignor.class.getMethods()) {
            if (method.getName().equals("performAssignment")) {
                // A name in 3.x, a constant in 4.x.
                Class<?> protocol = method.getParameterTypes()[1];
                Object eager = protocol == String.class ? "default" : protocol.getField("EAGER").get(null);
                given = (Map<?, ?>) method.invoke(
                    new EagerAssignor(new LogContext()), names.get(0), eager, members, coordinator);
            }
        }
        StringBuilder answer = new StringBuilder();
        String separator = "";
        for (String name : names) {
            ConnectProtocol.Assignment of = ConnectProtocol.deserializeAssignment((ByteBuffer) given.get(name));
            answer.append(separator).append(Lines.hex(name)).append('=').append(units(of.connectors(), of.tasks()));
            separator = ",";
        }
        return answer.toString();
    }

    private static ClusterConfigState configured(String text) throws Exception {
        Map<String, Integer> counts = new LinkedHashMap<>();
        Map<String, Map<String, String>> configs = new LinkedHashMap<>();
        for (String connector : Lines.split(text, ",")) {
            String[] parts = connector.split(":", -1);
            counts.put(Lines.text(parts[0]), Integer.parseInt(parts[1]));
            configs.put(Lines.text(parts[0]), new HashMap<>());
        }
        for (Constructor<?> constructor : ClusterConfigState.class.getConstructors()) {
            Class<?>[] types = constructor.getParameterTypes();
            Object[] values = new Object[types.length];
            for (int index = 0; index < types.length; index++) {
                values[index] = types[index] == long.class ? 0L
                    : index == 2 ? counts
                    : index == 3 ? configs
                    : types[index] == Map.class ? Collections.emptyMap()
                    : types[index] == Set.class ? Collections.emptySet() : null;
            }
            return (ClusterConfigState) constructor.newInstance(values);
        }
        throw new IllegalStateException();
    }

    /** What a worker reads from its configuration topic. The store is made without its client, which it never starts. */
    private static String config(List<String> records) throws Exception {
        KafkaConfigBackingStore store = (KafkaConfigBackingStore) made(KafkaConfigBackingStore.class);
        for (Field field : KafkaConfigBackingStore.class.getDeclaredFields()) {
            Object value = field.getType() == Map.class ? new HashMap<>()
                : field.getType() == Set.class ? new java.util.HashSet<>()
                : field.getName().equals("lock") ? new Object()
                : field.getName().equals("converter") ? converter() : null;
            if (value != null && !java.lang.reflect.Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                field.set(store, value);
            }
        }
        Constructor<?> constructor = Class.forName(KafkaConfigBackingStore.class.getName() + "$ConsumeCallback")
            .getDeclaredConstructor(KafkaConfigBackingStore.class);
        constructor.setAccessible(true);
        @SuppressWarnings("unchecked")
        Callback<ConsumerRecord<String, byte[]>> reader =
            (Callback<ConsumerRecord<String, byte[]>>) constructor.newInstance(store);
        long offset = 0;
        for (String record : records) {
            String[] parts = record.split("=", -1);
            byte[] value = parts[1].getBytes(StandardCharsets.US_ASCII);
            reader.onCompletion(null, new ConsumerRecord<>("configs", 0, offset++, Lines.text(parts[0]), value));
        }
        ClusterConfigState read = store.snapshot();
        List<String> found = new ArrayList<>();
        for (String name : read.connectors()) {
            found.add(Lines.hex(name) + ":" + read.tasks(name).size() + ":" + read.targetState(name));
        }
        return String.join(",", found);
    }

    private static Converter converter() {
        return (Converter) Proxy.newProxyInstance(Converter.class.getClassLoader(), new Class<?>[] {Converter.class},
            (proxy, method, values) -> {
                String text = new String((byte[]) values[1], StandardCharsets.US_ASCII);
                Map<String, Object> told = new HashMap<>();
                for (String field : Lines.split(text, "\\+")) {
                    String[] parts = field.split(":", -1);
                    told.put(parts[0], parts.length == 1 ? null : parts[1].isEmpty() ? new HashMap<>()
                        : parts[1].matches("[0-9]+") ? (Object) Long.parseLong(parts[1]) : parts[1]);
                }
                return new SchemaAndValue(null, text.equals("null") ? null : told);
            });
    }

    private static Object made(Class<?> what) throws Exception {
        Field unsafe = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
        unsafe.setAccessible(true);
        Object maker = unsafe.get(null);
        return maker.getClass().getMethod("allocateInstance", Class.class).invoke(maker, what);
    }

    private static Time clock() {
        return (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, values) -> method.getName().equals("milliseconds") ? now : null);
    }

    private static ExtendedAssignment assignment(String line) {
        String[] parts = line.split(";", -1);
        ConnectorsAndTasks units = builder(parts[5]).build();
        ConnectorsAndTasks revoked = builder(parts[6]).build();
        return new ExtendedAssignment(Short.parseShort(parts[0]), Short.parseShort(parts[1]), Lines.text(parts[2]),
            Lines.text(parts[3]), Long.parseLong(parts[4]), units.connectors(), units.tasks(), revoked.connectors(),
            revoked.tasks(), Integer.parseInt(parts[7]));
    }

    private static ConnectorsAndTasks.Builder builder(String text) {
        List<String> connectors = new ArrayList<>();
        List<ConnectorTaskId> tasks = new ArrayList<>();
        for (String unit : Lines.split(text, "\\+")) {
            String[] parts = unit.split("/", -1);
            int number = Integer.parseInt(parts[1]);
            if (number < 0) {
                connectors.add(Lines.text(parts[0]));
            } else {
                tasks.add(new ConnectorTaskId(Lines.text(parts[0]), number));
            }
        }
        return new ConnectorsAndTasks.Builder().with(connectors, tasks);
    }

    private static String units(Collection<?> connectors, Collection<?> tasks) {
        List<String> found = new ArrayList<>();
        connectors.forEach(connector -> found.add(Lines.hex((String) connector) + "/-1"));
        tasks.forEach(task -> found.add(Lines.hex(((ConnectorTaskId) task).connector()) + "/" + ((ConnectorTaskId) task).task()));
        return String.join("+", found);
    }
}

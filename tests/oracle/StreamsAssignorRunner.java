import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * Runs the task assignor of streams groups (KIP-1071), one case per line in, one answer per line out, in order.
 *
 * Runs on the class path of one kafka-group-coordinator release (4.2 or newer), by reflection: 4.4 has moved and renamed
 * the types of the input. Names are texts of Lines.java. A line is
 *
 *   replicas TAB subtopologies TAB members
 *   subtopologies: name ":" tasks ":" "1" if stateful, otherwise "0", joined by ";"
 *   members:       id ":" process ":" active ":" standby ":" offsets, joined by ";", tasks as name "=" partitions by "+",
 *                  joined by ","; offsets as name "=" partition "=" offset, joined by ","
 *
 * The input is built as in the coordinator (TargetAssignmentBuilder).
 *
 * An answer is member ":" active ":" standby, joined by ";"; or "!" exception ":" message.
 */
public final class StreamsAssignorRunner {
    private static final String ROOM = "org.apache.kafka.coordinator.group.streams.assignor.";
    private static final String API = "org.apache.kafka.coordinator.group.api.streams.assignor.";

    public static void main(String[] arguments) throws Exception {
        Lines.answer(fields -> {
            try {
                return answer(fields);
            } catch (InvocationTargetException wrapped) {
                return Lines.thrown(wrapped.getCause());
            }
        });
    }

    private static String answer(String[] fields) throws Exception {
        boolean moved = exists(API + "TaskAssignor");
        Map<String, Object> members = new HashMap<>();
        Constructor<?> member = Class.forName(ROOM + (moved ? "MemberMetadataAndStateImpl" : "AssignmentMemberSpec")).getConstructors()[0];
        for (String told : Lines.split(fields[2], ";")) {
            String[] parts = told.split(":", -1);
            Map<String, Map<Integer, Long>> offsets = new HashMap<>();
            for (String entry : Lines.split(parts[4], ",")) {
                String[] offset = entry.split("=", -1);
                offsets.computeIfAbsent(Lines.text(offset[0]), __ -> new HashMap<>()).put(Integer.parseInt(offset[1]), Long.parseLong(offset[2]));
            }
            Object active = tasks(parts[2]);
            Object standby = tasks(parts[3]);
            members.put(Lines.text(parts[0]), moved
                ? member.newInstance(Optional.empty(), Optional.empty(), Lines.text(parts[1]), Map.of(), active, standby, Map.of(), offsets, Map.of())
                : member.newInstance(Optional.empty(), Optional.empty(), active, standby, Map.of(), Lines.text(parts[1]), Map.of(), Map.of(), Map.of()));
        }
        Map<String, String> configs = Map.of("num.standby.replicas", fields[0]);
        Object spec = Class.forName(ROOM + "GroupSpecImpl").getConstructors()[0].newInstance(
            java.util.Collections.unmodifiableMap(members),
            moved ? Class.forName(ROOM + "AssignmentConfigsImpl").getMethod("fromMap", Map.class).invoke(null, configs) : configs);
        Map<String, String[]> topology = new TreeMap<>();
        for (String part : Lines.split(fields[1], ";")) {
            String[] parts = part.split(":", -1);
            topology.put(Lines.text(parts[0]), parts);
        }
        Class<?> describes = Class.forName((moved ? API : ROOM) + "TopologyDescriber");
        Object describer = Proxy.newProxyInstance(describes.getClassLoader(), new Class<?>[] {describes}, (proxy, method, asked) ->
            switch (method.getName()) {
                case "subtopologies" -> List.copyOf(topology.keySet());
                case "isStateful" -> topology.get((String) asked[0])[2].equals("1");
                case "maxNumInputPartitions" -> Integer.parseInt(topology.get((String) asked[0])[1]);
                default -> throw new IllegalStateException(method.getName());
            });
        Object assignor = Class.forName(ROOM + "StickyTaskAssignor").getConstructor().newInstance();
        Object result = assignor.getClass()
            .getMethod("assign", Class.forName((moved ? API : ROOM) + "GroupSpec"), describes)
            .invoke(assignor, spec, describer);
        StringBuilder answer = new StringBuilder();
        Map<?, ?> assigned = (Map<?, ?>) result.getClass().getMethod("members").invoke(result);
        for (Map.Entry<?, ?> entry : assigned.entrySet()) {
            answer.append(answer.length() == 0 ? "" : ";").append(Lines.hex((String) entry.getKey()));
            for (String kind : new String[] {"activeTasks", "standbyTasks"}) {
                Method given = entry.getValue().getClass().getMethod(kind);
                answer.append(":").append(((Map<?, ?>) given.invoke(entry.getValue())).entrySet().stream()
                    .map(tasks -> Lines.hex((String) tasks.getKey()) + "=" + ((Set<?>) tasks.getValue()).stream()
                        .map(String::valueOf).collect(Collectors.joining("+")))
                    .collect(Collectors.joining(",")));
            }
        }
        return answer.toString();
    }

    private static Map<String, Set<Integer>> tasks(String joined) {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        for (String entry : Lines.split(joined, ",")) {
            String[] both = entry.split("=", -1);
            Set<Integer> partitions = tasks.computeIfAbsent(Lines.text(both[0]), __ -> new HashSet<>());
            for (String partition : Lines.split(both[1], "\\+")) {
                partitions.add(Integer.parseInt(partition));
            }
        }
        return tasks;
    }

    private static boolean exists(String name) {
        try {
            Class.forName(name);
            return true;
        } catch (ClassNotFoundException older) {
            return false;
        }
    }
}

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.share.ShareCoordinatorShard;
import org.apache.kafka.coordinator.share.ShareGroupOffset;
import org.apache.kafka.coordinator.share.generated.ShareSnapshotValue;
import org.apache.kafka.coordinator.share.generated.ShareUpdateValue;
import org.apache.kafka.server.share.persister.PersisterStateBatch;

/**
 * The share coordinator's records of one partition, written by its classes and replayed by its shard.
 *
 * A line is a history, records joined by ";": kind "|" start "|" complete "|" batches; the kind is S for a snapshot or
 * U for an update, batches are first "," last "," state "," deliveries, joined by "/". The answer has the values' bytes
 * in hex, joined by ",", then a space and the state after them: start "|" complete "|" batches.
 */
public final class ShareStateRunner {
    public static void main(String[] arguments) throws Exception {
        Method merge = ShareCoordinatorShard.class.getDeclaredMethod("merge", ShareGroupOffset.class, ShareUpdateValue.class);
        merge.setAccessible(true);
        Lines.answer(fields -> {
            List<String> written = new ArrayList<>();
            ShareGroupOffset state = null;
            for (String record : fields[0].split(";")) {
                String[] parts = record.split("\\|", -1);
                long start = Long.parseLong(parts[1]);
                int complete = Integer.parseInt(parts[2]);
                if (parts[0].equals("S")) {
                    ShareSnapshotValue value = new ShareSnapshotValue().setStartOffset(start).setDeliveryCompleteCount(complete);
                    for (long[] of : batches(parts[3])) {
                        value.stateBatches().add(new ShareSnapshotValue.StateBatch().setFirstOffset(of[0])
                            .setLastOffset(of[1]).setDeliveryState((byte) of[2]).setDeliveryCount((short) of[3]));
                    }
                    written.add(hex(value));
                    state = ShareGroupOffset.fromRecord(value);
                } else {
                    ShareUpdateValue value = new ShareUpdateValue().setStartOffset(start).setDeliveryCompleteCount(complete);
                    for (long[] of : batches(parts[3])) {
                        value.stateBatches().add(new ShareUpdateValue.StateBatch().setFirstOffset(of[0])
                            .setLastOffset(of[1]).setDeliveryState((byte) of[2]).setDeliveryCount((short) of[3]));
                    }
                    written.add(hex(value));
                    state = state == null ? ShareGroupOffset.fromRecord(value) : (ShareGroupOffset) merge.invoke(null, state, value);
                }
            }
            String kept = state.stateBatches().stream().map(ShareStateRunner::text).collect(Collectors.joining("/"));
            return String.join(",", written) + " " + state.startOffset() + "|" + state.deliveryCompleteCount() + "|" + kept;
        });
    }

    private static List<long[]> batches(String text) {
        List<long[]> found = new ArrayList<>();
        for (String batch : text.isEmpty() ? new String[0] : text.split("/")) {
            String[] numbers = batch.split(",");
            found.add(new long[] {Long.parseLong(numbers[0]), Long.parseLong(numbers[1]), Long.parseLong(numbers[2]), Long.parseLong(numbers[3])});
        }
        return found;
    }

    private static String text(PersisterStateBatch of) {
        return of.firstOffset() + "," + of.lastOffset() + "," + of.deliveryState() + "," + of.deliveryCount();
    }

    private static String hex(ApiMessage value) {
        return Lines.hex(MessageUtil.toVersionPrefixedByteBuffer((short) 0, value));
    }
}

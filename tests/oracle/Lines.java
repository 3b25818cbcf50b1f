import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;

/**
 * What a runner and its caller (java_runner.py) exchange: one case per line in, one answer per line out, in order.
 *
 * An empty line is answered with an empty line after the output is flushed, so that answers can become part of the next
 * cases. Texts are "x" and the hex of their UTF-16 code units, so that no separator can occur in them; "-" is null.
 */
final class Lines {
    interface Runner {
        String answer(String[] fields) throws Exception;
    }

    /** Answers every line, whose fields have TABs between them. */
    static void answer(Runner runner) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, "US-ASCII");
        // Libraries log to standard output: RocketMQ 5.x what it cannot decode.
        System.setOut(new PrintStream(PrintStream.nullOutputStream()));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(line.isEmpty() ? "" : runner.answer(line.split("\t", -1)));
            if (line.isEmpty()) {
                out.flush();
            }
        }
        out.flush();
    }

    /** The answer where a class throws: "!" exception ":" message. */
    static String thrown(Throwable thrown) {
        return "!" + thrown.getClass().getSimpleName() + ":" + hex(thrown.getMessage() == null ? "" : thrown.getMessage());
    }

    static List<String> split(String joined, String separator) {
        return joined.isEmpty() ? List.of() : List.of(joined.split(separator, -1));
    }

    static String text(String hex) {
        return hex.equals("-") ? null : new String(HexFormat.of().parseHex(hex.substring(1)), StandardCharsets.UTF_16BE);
    }

    static String hex(String text) {
        return text == null ? "-" : "x" + HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_16BE));
    }

    static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}

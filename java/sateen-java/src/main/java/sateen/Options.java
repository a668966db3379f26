package sateen;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * Options of a database and its column families, by name. The names are those of RocksDB, or with
 * {@code sateen.} before them those that only Sateen has; values are texts with units, such as
 * {@code 64MiB}. A name or a value that does not exist is an error of the open, which names it.
 *
 * <pre>{@code
 * Options options = new Options()
 *     .set("write_buffer_size", "64MiB")
 *     .set("sateen.memory_budget", "1GiB");
 * }</pre>
 */
public final class Options {
    private final Map<String, String> values = new LinkedHashMap<>();
    private int flags;
    private Cache cache;
    private WriteBufferManager writeBuffers;
    private SharedRuntime runtime;

    /** Makes options for a database that is created if it is missing. */
    public Options() {
        values.put("create_if_missing", "true");
    }

    /** Makes a copy of {@code other}. */
    public Options(Options other) {
        values.putAll(other.values);
        flags = other.flags;
        cache = other.cache;
        writeBuffers = other.writeBuffers;
        runtime = other.runtime;
    }

    /** Sets an option; the last value of a name counts. */
    public Options set(String name, String value) {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(value, "value");
        if (name.isBlank() || name.indexOf('=') >= 0 || name.indexOf(';') >= 0) {
            throw new IllegalArgumentException("\"" + name + "\" cannot be the name of an option");
        }
        if (name.indexOf(0) >= 0 || value.indexOf(0) >= 0) {
            throw new IllegalArgumentException("the option " + name + " contains a zero character");
        }
        if (value.indexOf(';') >= 0 && !(value.startsWith("{") && value.endsWith("}"))) {
            throw new IllegalArgumentException("the value of " + name
                + " contains a semicolon; set each option by a call of its own, or by setAll");
        }
        values.put(name.trim(), value.trim());
        return this;
    }

    /** Sets an option to a number. */
    public Options set(String name, long value) {
        return set(name, Long.toString(value));
    }

    /** Sets an option to true or false. */
    public Options set(String name, boolean value) {
        return set(name, Boolean.toString(value));
    }

    /** Sets all options of a text such as {@code write_buffer_size=64M;max_open_files=200}. */
    public Options setAll(String text) {
        int depth = 0;
        int start = 0;
        for (int at = 0; at <= text.length(); at++) {
            char c = at < text.length() ? text.charAt(at) : ';';
            depth += c == '{' ? 1 : c == '}' ? -1 : 0;
            if ((c == ';' && depth == 0) || at == text.length()) {
                String entry = text.substring(start, at).trim();
                start = at + 1;
                int equals = entry.indexOf('=');
                if (equals > 0) {
                    set(entry.substring(0, equals), entry.substring(equals + 1));
                } else if (!entry.isEmpty()) {
                    throw new IllegalArgumentException("\"" + entry + "\" is not an option: write NAME=VALUE");
                }
            }
        }
        return this;
    }

    /** Uses the merge operator {@code uint64add}: values are little-endian numbers of 8 bytes. */
    public Options mergeAdd64() {
        flags |= Native.ADD64;
        return this;
    }

    /** Counts what the database does: {@link Database#metrics}. */
    public Options statistics() {
        flags |= Native.STATISTICS;
        return this;
    }

    /** Uses a block cache that several databases share. */
    public Options cache(Cache shared) {
        cache = shared;
        return this;
    }

    /** Uses one limit of memtables for several databases. */
    public Options writeBufferManager(WriteBufferManager shared) {
        writeBuffers = shared;
        return this;
    }

    /** Shares threads, a scheduler, and the memory that the runtime has, with other databases. A cache or a
     * write-buffer manager of these options goes before that of the runtime. */
    public Options runtime(SharedRuntime shared) {
        runtime = shared;
        return this;
    }

    /** Returns the options as the text that {@link #setAll} reads. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        values.forEach((name, value) -> text.append(text.length() == 0 ? "" : ";").append(name).append('=')
            .append(value));
        return text.toString();
    }

    /** Makes a native object of these options, which the caller frees. */
    long make() {
        Cache blocks = cache != null || runtime == null ? cache : runtime.cache;
        WriteBufferManager memtables = writeBuffers != null || runtime == null ? writeBuffers : runtime.memtables;
        // A cache that is set by C brings RocksDB's defaults for tables, which have no filters.
        String text = blocks == null ? toString() : "sateen.bloom_bits_per_key=10;" + this;
        return Guard.using(runtime == null ? null : runtime.guard, () -> Guard.using(blocks == null ? null : blocks.guard,
            () -> Guard.using(memtables == null ? null : memtables.guard, () -> Native.CALLS.options(text, flags,
                blocks == null ? 0 : blocks.handle, memtables == null ? 0 : memtables.handle,
                runtime == null ? 0 : runtime.environment))));
    }
}

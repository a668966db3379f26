package sateen.kafka;

import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.streams.StreamsConfig;

/**
 * The keys of the configuration. They stand among those of {@link StreamsConfig}.
 *
 * <table>
 * <caption>Keys, defaults and meaning</caption>
 * <tr><th>key</th><th>default</th><th>meaning</th></tr>
 * <tr><td>{@value #OPTIONS}</td><td>{@value #OPTIONS_DEFAULT}</td><td>options of each database, as
 * {@code NAME=VALUE;…}, which come after the default</td></tr>
 * <tr><td>{@value #STORE_OPTIONS_PREFIX}NAME</td><td>none</td><td>options of the databases of the store
 * NAME, which come after those of all stores</td></tr>
 * <tr><td>{@value #RUNTIME_SHARED}</td><td>true</td><td>whether all stores of an instance share threads, a
 * scheduler and memory</td></tr>
 * <tr><td>{@value #RUNTIME_THREADS}</td><td>none</td><td>threads for the flushes and compactions of all
 * stores; without it what {@value #OPTIONS} say</td></tr>
 * <tr><td>{@value #MEMORY_BUDGET_BYTES}</td><td>268435456</td><td>bytes of the block cache and the memtables
 * of all stores</td></tr>
 * <tr><td>{@value #UNCOMMITTED_MAX_BYTES}</td><td>16777216</td><td>bytes that one store of one partition
 * keeps in memory until the next commit</td></tr>
 * <tr><td>{@value #COMMIT_SYNC}</td><td>false</td><td>whether each commit of a store is synced</td></tr>
 * <tr><td>{@value #RESTORE_LOW_PRIORITY}</td><td>true</td><td>whether writes of a restoration give way to
 * those of running tasks</td></tr>
 * </table>
 */
public final class SateenConfig {
    /** Options of each database, which come after {@link #OPTIONS_DEFAULT}. */
    public static final String OPTIONS = "sateen.options";
    /** Options that each database has unless {@link #OPTIONS} says otherwise. */
    public static final String OPTIONS_DEFAULT = "write_buffer_size=16MiB;max_open_files=1000";
    /** Before the name of a store: options of its databases. */
    public static final String STORE_OPTIONS_PREFIX = "sateen.options.";
    /** Whether all stores of an instance share threads, a scheduler and memory. Without it each database of
     * each partition has its own, as its options say. */
    public static final String RUNTIME_SHARED = "sateen.runtime.shared";
    /** Threads for the flushes and compactions of all stores of an instance, on each disk. */
    public static final String RUNTIME_THREADS = "sateen.runtime.threads";
    /** Bytes of the block cache and the memtables of all stores of an instance together. Memtables take at
     * most half of it; beyond that the largest one is flushed. */
    public static final String MEMORY_BUDGET_BYTES = "sateen.memory.budget.bytes";
    /** Bytes of keys and values, with the memory that they take beside, until a commit. */
    public static final String UNCOMMITTED_MAX_BYTES = "sateen.uncommitted.max.bytes";
    /** Whether each commit of a store is durable when it returns. Without it, a power failure may undo the
     * last commits, whole; their records are then restored from the changelog. */
    public static final String COMMIT_SYNC = "sateen.commit.sync";
    /** Whether the writes of a restoration have low priority. */
    public static final String RESTORE_LOW_PRIORITY = "sateen.restore.low.priority";

    private static final List<String> KEYS = List.of(OPTIONS, RUNTIME_SHARED, RUNTIME_THREADS,
        MEMORY_BUDGET_BYTES, UNCOMMITTED_MAX_BYTES, COMMIT_SYNC, RESTORE_LOW_PRIORITY);
    private static final long UNCOMMITTED_MAX_BYTES_DEFAULT = 16L << 20;
    private static final long MEMORY_BUDGET_BYTES_DEFAULT = 256L << 20;
    /** Options of a database that would have no effect where stores share memory. */
    private static final Pattern MEMORY_OF_ONE_STORE =
        Pattern.compile("(?<![\\w.])(sateen\\.block_cache_bytes|sateen\\.memory_budget|block_cache)\\s*=");

    final String options;
    final boolean runtimeShared;
    /** 0 unless it is set. */
    final int runtimeThreads;
    final long memoryBudget;
    final long uncommittedMaxBytes;
    final boolean commitSync;
    final boolean restoreLowPriority;
    final boolean exactlyOnce;

    SateenConfig(Map<String, ?> configs, String store) {
        refuseUnknown(configs);
        String all = text(configs, OPTIONS, "");
        String own = text(configs, STORE_OPTIONS_PREFIX + store, "");
        options = OPTIONS_DEFAULT + (all.isEmpty() ? "" : ";" + all)
            + (own.isEmpty() ? "" : ";" + own);
        runtimeShared = truth(configs, RUNTIME_SHARED, true);
        runtimeThreads = (int) Math.min(number(configs, RUNTIME_THREADS, "threads", 0), Integer.MAX_VALUE);
        memoryBudget = number(configs, MEMORY_BUDGET_BYTES, "bytes", MEMORY_BUDGET_BYTES_DEFAULT);
        if (runtimeShared) {
            refuseMemoryOfOneStore(configs, OPTIONS, all);
            refuseMemoryOfOneStore(configs, STORE_OPTIONS_PREFIX + store, own);
        }
        uncommittedMaxBytes = number(configs, UNCOMMITTED_MAX_BYTES, "bytes", UNCOMMITTED_MAX_BYTES_DEFAULT);
        commitSync = truth(configs, COMMIT_SYNC, false);
        restoreLowPriority = truth(configs, RESTORE_LOW_PRIORITY, true);
        Object guarantee = configs.get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG);
        exactlyOnce = guarantee != null && guarantee.toString().startsWith("exactly_once");
    }

    /** Checks what can be checked before a store is opened. */
    static void check(Map<String, ?> configs) {
        new SateenConfig(configs, "");
        for (String key : configs.keySet()) {
            if (key.startsWith(STORE_OPTIONS_PREFIX)) {
                new SateenConfig(configs, key.substring(STORE_OPTIONS_PREFIX.length()));
            }
        }
    }

    private static void refuseUnknown(Map<String, ?> configs) {
        for (String key : configs.keySet()) {
            if (key.startsWith("sateen.") && !KEYS.contains(key)
                    && !key.startsWith(STORE_OPTIONS_PREFIX)) {
                throw new ConfigException(key, configs.get(key),
                    "there is no such key; the keys are " + String.join(", ", KEYS) + " and "
                        + STORE_OPTIONS_PREFIX + "STORE");
            }
        }
    }

    private static String text(Map<String, ?> configs, String key, String otherwise) {
        Object value = configs.get(key);
        return value == null ? otherwise : value.toString().trim();
    }

    private static void refuseMemoryOfOneStore(Map<String, ?> configs, String key, String options) {
        Matcher found = MEMORY_OF_ONE_STORE.matcher(options);
        if (found.find()) {
            throw new ConfigException(key, configs.get(key), found.group(1) + " has no effect, because all stores"
                + " share " + MEMORY_BUDGET_BYTES + "; set that, or " + RUNTIME_SHARED + "=false");
        }
    }

    private static long number(Map<String, ?> configs, String key, String unit, long otherwise) {
        Object value = configs.get(key);
        if (value == null) {
            return otherwise;
        }
        try {
            long number = value instanceof Number ? ((Number) value).longValue()
                : Long.parseLong(value.toString().trim());
            if (number <= 0) {
                throw new ConfigException(key, value, "it must be positive");
            }
            return number;
        } catch (NumberFormatException none) {
            throw new ConfigException(key, value, "it must be a whole number of " + unit);
        }
    }

    private static boolean truth(Map<String, ?> configs, String key, boolean otherwise) {
        Object value = configs.get(key);
        if (value == null) {
            return otherwise;
        }
        switch (value.toString().trim()) {
            case "true":
                return true;
            case "false":
                return false;
            default:
                throw new ConfigException(key, value, "it must be true or false");
        }
    }
}

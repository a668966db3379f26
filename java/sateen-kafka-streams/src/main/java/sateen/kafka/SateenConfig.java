package sateen.kafka;

import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.streams.StreamsConfig;

/**
 * The keys of the configuration. They stand among those of {@link StreamsConfig}.
 *
 * <table>
 * <caption>Keys, defaults and meaning</caption>
 * <tr><th>key</th><th>default</th><th>meaning</th></tr>
 * <tr><td>{@value #OPTIONS}</td><td>{@value #OPTIONS_DEFAULT}</td><td>options of each database, as
 * {@code NAME=VALUE;…}</td></tr>
 * <tr><td>{@value #STORE_OPTIONS_PREFIX}NAME</td><td>none</td><td>options of the databases of the store
 * NAME, which come after those of all stores</td></tr>
 * <tr><td>{@value #UNCOMMITTED_MAX_BYTES}</td><td>16777216</td><td>bytes that one store of one partition
 * keeps in memory until the next commit</td></tr>
 * <tr><td>{@value #COMMIT_SYNC}</td><td>false</td><td>whether each commit of a store is synced</td></tr>
 * <tr><td>{@value #RESTORE_LOW_PRIORITY}</td><td>true</td><td>whether writes of a restoration give way to
 * those of running tasks</td></tr>
 * </table>
 */
public final class SateenConfig {
    /** Options of each database. */
    public static final String OPTIONS = "sateen.options";
    /** The default of {@link #OPTIONS}. */
    public static final String OPTIONS_DEFAULT =
        "write_buffer_size=16MiB;sateen.block_cache_bytes=32MiB;max_open_files=1000";
    /** Before the name of a store: options of its databases. */
    public static final String STORE_OPTIONS_PREFIX = "sateen.options.";
    /** Bytes of keys and values, with the memory that they take beside, until a commit. */
    public static final String UNCOMMITTED_MAX_BYTES = "sateen.uncommitted.max.bytes";
    /** Whether each commit of a store is durable when it returns. Without it, a power failure may undo the
     * last commits, whole; their records are then restored from the changelog. */
    public static final String COMMIT_SYNC = "sateen.commit.sync";
    /** Whether the writes of a restoration have low priority. */
    public static final String RESTORE_LOW_PRIORITY = "sateen.restore.low.priority";

    private static final long UNCOMMITTED_MAX_BYTES_DEFAULT = 16L << 20;

    final String options;
    final long uncommittedMaxBytes;
    final boolean commitSync;
    final boolean restoreLowPriority;
    final boolean exactlyOnce;

    SateenConfig(Map<String, ?> configs, String store) {
        String all = text(configs, OPTIONS, OPTIONS_DEFAULT);
        String own = text(configs, STORE_OPTIONS_PREFIX + store, "");
        options = own.isEmpty() ? all : all + ";" + own;
        uncommittedMaxBytes = number(configs, UNCOMMITTED_MAX_BYTES, UNCOMMITTED_MAX_BYTES_DEFAULT);
        commitSync = truth(configs, COMMIT_SYNC, false);
        restoreLowPriority = truth(configs, RESTORE_LOW_PRIORITY, true);
        Object guarantee = configs.get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG);
        exactlyOnce = guarantee != null && guarantee.toString().startsWith("exactly_once");
    }

    private static String text(Map<String, ?> configs, String key, String otherwise) {
        Object value = configs.get(key);
        return value == null ? otherwise : value.toString().trim();
    }

    private static long number(Map<String, ?> configs, String key, long otherwise) {
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
            throw new ConfigException(key, value, "it must be a whole number of bytes");
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

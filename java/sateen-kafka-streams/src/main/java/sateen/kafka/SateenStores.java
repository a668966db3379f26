package sateen.kafka;

import java.time.Duration;
import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Suppliers of stores, for {@code Materialized.as(…)} and for the builders of Kafka's class {@code Stores}:
 *
 * <pre>{@code
 * Stores.keyValueStoreBuilder(SateenStores.keyValueStore("counts"), Serdes.String(), Serdes.Long())
 * }</pre>
 */
public final class SateenStores {
    /** The scopes of metrics, from which their tags follow. */
    static final String SCOPE = "sateen", WINDOW_SCOPE = "sateen-window",
        SESSION_SCOPE = "sateen-session";
    /** Segments are not shorter: each one has files of its own. */
    private static final long SEGMENT_MS_MIN = 60_000;

    private SateenStores() {}

    /** A key-value store for {@code Stores.keyValueStoreBuilder}. */
    public static KeyValueBytesStoreSupplier keyValueStore(String name) {
        return new KeyValue(name, Format.PLAIN);
    }

    /** A key-value store for {@code Stores.timestampedKeyValueStoreBuilder}, and for tables of the DSL. */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStore(String name) {
        return new KeyValue(name, Format.TIMESTAMPED);
    }

    /** A key-value store for {@code Stores.timestampedKeyValueStoreBuilderWithHeaders}. */
    public static KeyValueBytesStoreSupplier keyValueStoreWithHeaders(String name) {
        return new KeyValueWithHeaders(name);
    }

    /** A store of all versions of a value for {@code Stores.versionedKeyValueStoreBuilder}. */
    public static VersionedBytesStoreSupplier versionedKeyValueStore(String name, Duration historyRetention) {
        long retention = millis(historyRetention, "historyRetention");
        return new Versioned(name, retention, Math.max(retention / 4, SEGMENT_MS_MIN));
    }

    /** A window store for {@code Stores.windowStoreBuilder}. */
    public static WindowBytesStoreSupplier windowStore(String name, Duration retention, Duration windowSize,
            boolean retainDuplicates) {
        return window(name, retention, windowSize, retainDuplicates, Format.PLAIN);
    }

    /** A window store for {@code Stores.timestampedWindowStoreBuilder}, and for the DSL. */
    public static WindowBytesStoreSupplier timestampedWindowStore(String name, Duration retention,
            Duration windowSize, boolean retainDuplicates) {
        return window(name, retention, windowSize, retainDuplicates, Format.TIMESTAMPED);
    }

    /** A window store for {@code Stores.timestampedWindowStoreWithHeadersBuilder}. */
    public static WindowBytesStoreSupplier windowStoreWithHeaders(String name, Duration retention,
            Duration windowSize, boolean retainDuplicates) {
        return window(name, retention, windowSize, retainDuplicates, Format.HEADERS);
    }

    /** A session store for {@code Stores.sessionStoreBuilder}. */
    public static SessionBytesStoreSupplier sessionStore(String name, Duration retention) {
        return new Session(name, millis(retention, "retention"), Format.PLAIN);
    }

    /** A session store for {@code Stores.sessionStoreBuilderWithHeaders}. */
    public static SessionBytesStoreSupplier sessionStoreWithHeaders(String name, Duration retention) {
        return new SessionWithHeaders(name, millis(retention, "retention"));
    }

    /** What values begin with. */
    enum Format { PLAIN, TIMESTAMPED, HEADERS }

    static WindowBytesStoreSupplier window(String name, Duration retention, Duration windowSize,
            boolean retainDuplicates, Format format) {
        long kept = millis(retention, "retention");
        long size = millis(windowSize, "windowSize");
        if (size > kept) {
            throw new IllegalArgumentException("the window store " + name + " keeps windows for " + retention
                + ", which is less than their size, " + windowSize);
        }
        return format == Format.HEADERS ? new WindowWithHeaders(name, kept, size, retainDuplicates)
            : new Window(name, kept, size, retainDuplicates, format);
    }

    private static long millis(Duration duration, String what) {
        Objects.requireNonNull(duration, what);
        long millis;
        try {
            millis = duration.toMillis();
        } catch (ArithmeticException large) {
            throw new IllegalArgumentException(what + " is " + duration
                + ", which does not fit into a number of milliseconds", large);
        }
        if (millis < 0) {
            throw new IllegalArgumentException(what + " is negative: " + duration);
        }
        return millis;
    }

    private static class KeyValue implements KeyValueBytesStoreSupplier {
        private final String name;
        private final Format format;

        KeyValue(String name, Format format) {
            this.name = Objects.requireNonNull(name, "name cannot be null");
            this.format = format;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            switch (format) {
                case HEADERS:
                    return new SateenKeyValueStore.WithHeaders(name);
                case TIMESTAMPED:
                    return new SateenKeyValueStore.Timestamped(name);
                default:
                    return new SateenKeyValueStore(name);
            }
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }
    }

    private static final class KeyValueWithHeaders extends KeyValue implements HeadersBytesStoreSupplier {
        KeyValueWithHeaders(String name) {
            super(name, Format.HEADERS);
        }
    }

    private static final class Versioned implements VersionedBytesStoreSupplier {
        private final String name;
        private final long retention;
        private final long interval;

        Versioned(String name, long retention, long interval) {
            this.name = Objects.requireNonNull(name, "name cannot be null");
            this.retention = retention;
            this.interval = interval;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            return new SateenVersionedStore(name, interval, retention).asBytesStore();
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }

        @Override
        public long historyRetentionMs() {
            return retention;
        }
    }

    private static class Window implements WindowBytesStoreSupplier {
        private final String name;
        private final long retention;
        private final long size;
        private final boolean duplicates;
        private final Format format;

        Window(String name, long retention, long size, boolean duplicates, Format format) {
            this.name = Objects.requireNonNull(name, "name cannot be null");
            this.retention = retention;
            this.size = size;
            this.duplicates = duplicates;
            this.format = format;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public WindowStore<Bytes, byte[]> get() {
            long interval = segmentIntervalMs();
            switch (format) {
                case HEADERS:
                    return new SateenWindowStore.WithHeaders(name, interval, retention, size, duplicates);
                case TIMESTAMPED:
                    return new SateenWindowStore.Timestamped(name, interval, retention, size, duplicates);
                default:
                    return new SateenWindowStore(name, interval, retention, size, duplicates);
            }
        }

        @Override
        public String metricsScope() {
            return WINDOW_SCOPE;
        }

        @Override
        public long segmentIntervalMs() {
            return Math.max(retention / 2, SEGMENT_MS_MIN);
        }

        @Override
        public long windowSize() {
            return size;
        }

        @Override
        public boolean retainDuplicates() {
            return duplicates;
        }

        @Override
        public long retentionPeriod() {
            return retention;
        }
    }

    private static final class WindowWithHeaders extends Window implements HeadersBytesStoreSupplier {
        WindowWithHeaders(String name, long retention, long size, boolean duplicates) {
            super(name, retention, size, duplicates, Format.HEADERS);
        }
    }

    private static class Session implements SessionBytesStoreSupplier {
        private final String name;
        private final long retention;
        private final Format format;

        Session(String name, long retention, Format format) {
            this.name = Objects.requireNonNull(name, "name cannot be null");
            this.retention = retention;
            this.format = format;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public SessionStore<Bytes, byte[]> get() {
            return format == Format.HEADERS
                ? new SateenSessionStore.WithHeaders(name, segmentIntervalMs(), retention)
                : new SateenSessionStore(name, segmentIntervalMs(), retention);
        }

        @Override
        public String metricsScope() {
            return SESSION_SCOPE;
        }

        @Override
        public long segmentIntervalMs() {
            return Math.max(retention / 2, SEGMENT_MS_MIN);
        }

        @Override
        public long retentionPeriod() {
            return retention;
        }
    }

    private static final class SessionWithHeaders extends Session implements HeadersBytesStoreSupplier {
        SessionWithHeaders(String name, long retention) {
            super(name, retention, Format.HEADERS);
        }
    }
}

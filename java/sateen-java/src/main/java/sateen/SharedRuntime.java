package sateen;

/**
 * What several databases of a process share: threads for flushes and compactions, one scheduler for each
 * disk, and, if the builder says so, a block cache and a limit of memtables. A database gets it by
 * {@link Options#runtime}; without one it shares nothing. (Rust calls this {@code Runtime}; Java has another
 * class of that name.)
 *
 * <pre>{@code
 * try (SharedRuntime runtime = SharedRuntime.builder().threads(4).memoryBudget(1L << 30).build();
 *      Database users = Database.open(Path.of("users"), new Options().runtime(runtime));
 *      Database orders = Database.open(Path.of("orders"), new Options().runtime(runtime))) {
 *     …
 * }
 * }</pre>
 *
 * <p>Its threads run while a database is open. A close ends its use for new databases; those that are open
 * keep what they share until the last of them is closed.
 */
public final class SharedRuntime implements AutoCloseable {
    final Guard guard = new Guard("the shared runtime");
    final long environment;
    /** The block cache of all databases, or null. */
    final Cache cache;
    /** The limit of all memtables, or null. */
    final WriteBufferManager memtables;

    private SharedRuntime(Builder builder) {
        environment = environment(builder.threads);
        long blocks = builder.blockCacheBytes > 0 ? builder.blockCacheBytes : builder.memoryBudget;
        cache = blocks > 0 ? new Cache(blocks) : null;
        long limit = builder.memtableBytes > 0 ? builder.memtableBytes : builder.memoryBudget / 2;
        memtables = limit > 0 ? new WriteBufferManager(limit, builder.memoryBudget > 0 ? cache : null) : null;
    }

    /** The C library keeps the number of threads that was set last for all environments. */
    private static synchronized long environment(int threads) {
        return Native.CALLS.environment(threads);
    }

    /** Returns a builder. */
    public static Builder builder() {
        return new Builder();
    }

    /** Returns the bytes in the block cache of all databases; 0 if they do not share one. */
    public long blockCacheUsage() {
        return cache == null ? 0 : cache.usage();
    }

    /** Returns the bytes of all memtables; 0 if the databases do not share a limit of them. */
    public long memtableUsage() {
        return memtables == null ? 0 : memtables.usage();
    }

    @Override
    public void close() {
        if (guard.close()) {
            Native.CALLS.freeEnvironment(environment);
            if (memtables != null) {
                memtables.close();
            }
            if (cache != null) {
                cache.close();
            }
        }
    }

    /** Makes a {@link SharedRuntime}. */
    public static final class Builder {
        private int threads;
        private long blockCacheBytes;
        private long memtableBytes;
        private long memoryBudget;

        private Builder() {}

        /** Threads for flushes and compactions on each disk. By default the databases' options say it. */
        public Builder threads(int count) {
            threads = (int) positive("the number of threads", count);
            return this;
        }

        /** Bytes of one block cache for all databases. By default each has its own. */
        public Builder blockCacheBytes(long bytes) {
            blockCacheBytes = positive("the size of the block cache", bytes);
            return this;
        }

        /** Bytes of all memtables together, beyond which the largest one is flushed. By default each
         * database has its own limits. */
        public Builder memtableBytes(long bytes) {
            memtableBytes = positive("the limit of memtables", bytes);
            return this;
        }

        /** Bytes of the block cache and all memtables together. Memtables are flushed early once they take
         * half of it, and the cache has what they leave. No write waits for that. */
        public Builder memoryBudget(long bytes) {
            memoryBudget = positive("the memory budget", bytes);
            return this;
        }

        /** Makes the runtime. No thread runs until a database is opened. */
        public SharedRuntime build() {
            return new SharedRuntime(this);
        }

        private static long positive(String what, long number) {
            if (number <= 0) {
                throw new IllegalArgumentException(what + " must be positive, not " + number);
            }
            return number;
        }
    }
}

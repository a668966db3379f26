package sateen;

/** A block cache that several databases share. A database keeps it alive after its close. */
public final class Cache implements AutoCloseable {
    final Guard guard = new Guard("the block cache");
    final long handle;

    /** Makes one of {@code bytes} bytes. */
    public Cache(long bytes) {
        if (bytes <= 0) {
            throw new IllegalArgumentException("the size of a block cache must be positive, not " + bytes);
        }
        handle = Native.CALLS.cache(bytes);
    }

    /** Returns the bytes that are in the cache. */
    public long usage() {
        guard.enter();
        try {
            return Native.CALLS.cacheUsage(handle);
        } finally {
            guard.leave();
        }
    }

    @Override
    public void close() {
        if (guard.close()) {
            Native.CALLS.freeCache(handle);
        }
    }
}

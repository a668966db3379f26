package sateen;

/** One limit of memtables for several databases. A database keeps it alive after its close. */
public final class WriteBufferManager implements AutoCloseable {
    final Guard guard = new Guard("the write-buffer manager");
    final long handle;

    /** Makes one of {@code bytes} bytes. */
    public WriteBufferManager(long bytes) {
        this(bytes, null);
    }

    /** Makes one of {@code bytes} bytes, which memtables take from a cache: it holds fewer blocks then. */
    public WriteBufferManager(long bytes, Cache from) {
        if (bytes <= 0) {
            throw new IllegalArgumentException("the size of a write-buffer manager must be positive, not " + bytes);
        }
        handle = Guard.using(from == null ? null : from.guard,
            () -> Native.CALLS.writeBuffers(bytes, from == null ? 0 : from.handle));
    }

    /** Returns the bytes of all memtables. */
    public long usage() {
        guard.enter();
        try {
            return Native.CALLS.writeBuffersUsage(handle);
        } finally {
            guard.leave();
        }
    }

    @Override
    public void close() {
        if (guard.close()) {
            Native.CALLS.freeWriteBuffers(handle);
        }
    }
}

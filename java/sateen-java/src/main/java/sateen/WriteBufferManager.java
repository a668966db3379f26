package sateen;

/** One limit of memtables for several databases. A database keeps it alive after its close. */
public final class WriteBufferManager implements AutoCloseable {
    private final Guard guard = new Guard("the write-buffer manager");
    private final long handle;

    /** Makes one of {@code bytes} bytes. */
    public WriteBufferManager(long bytes) {
        if (bytes <= 0) {
            throw new IllegalArgumentException("the size of a write-buffer manager must be positive, not " + bytes);
        }
        handle = Native.CALLS.writeBuffers(bytes);
    }


    long enter() {
        guard.enter();
        return handle;
    }

    void leave() {
        guard.leave();
    }

    @Override
    public void close() {
        if (guard.close()) {
            Native.CALLS.freeWriteBuffers(handle);
        }
    }
}

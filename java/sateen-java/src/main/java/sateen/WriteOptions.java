package sateen;

/** How a write is done. The constants are the usual ones; {@code with…} methods make others. */
public final class WriteOptions {
    /** Native objects of all combinations, which live as long as the process. */
    private static final long[] HANDLES = new long[16];

    /** In the WAL, and durable when the operating system writes it. */
    public static final WriteOptions DEFAULT = new WriteOptions(0);
    /** Durable before the call returns. */
    public static final WriteOptions SYNC = new WriteOptions(Native.SYNC);
    /** Not in the WAL: lost by a crash unless a flush came first. */
    public static final WriteOptions WITHOUT_WAL = new WriteOptions(Native.NO_WAL);

    private final int bits;
    final long handle;

    private WriteOptions(int bits) {
        this.bits = bits;
        synchronized (HANDLES) {
            if (HANDLES[bits] == 0) {
                HANDLES[bits] = Native.CALLS.writeOptions(bits);
            }
            handle = HANDLES[bits];
        }
    }

    /** The write fails with {@code TIMED_OUT} or {@code ABORTED} where it would have to wait. */
    public WriteOptions withoutSlowdown() {
        return new WriteOptions(bits | Native.NO_SLOWDOWN);
    }

    /** The write waits where compactions are behind, so that other writers need not. */
    public WriteOptions withLowPriority() {
        return new WriteOptions(bits | Native.LOW_PRIORITY);
    }
}

package sateen;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Native memory of a thread for the arguments and results of one call. It begins with places for an
 * error, a length and a flag; bytes of arrays follow.
 *
 * <p>A call with arrays is {@code try (Scratch scratch = Scratch.with(bytes))}: the close frees the
 * memory of large arrays. A call without arrays needs no close.
 */
final class Scratch implements AutoCloseable {
    /** Places in the memory. */
    static final int ERROR = 0, LENGTH = 8, FLAG = 16, BYTES = 24;
    /** Bytes of arrays for which a thread keeps memory. */
    private static final int KEPT = 64 << 10;

    private static final ThreadLocal<Scratch> OF_THREAD = ThreadLocal.withInitial(Scratch::new);

    private final MemorySegment kept = Arena.ofAuto().allocate(BYTES + KEPT, 8);
    private MemorySegment segment = kept;
    /** The memory of a call with larger arrays; null during other calls. */
    private Arena large;
    private long used;

    private Scratch() {}

    /** Returns the memory of this thread, before a {@link #begin}. */
    static Scratch get() {
        return OF_THREAD.get();
    }

    /** Returns the memory for a call with up to {@code bytes} bytes of arrays. */
    static Scratch with(long bytes) {
        Scratch scratch = get();
        if (bytes > KEPT) {
            scratch.enlarge(bytes);
        }
        scratch.begin();
        return scratch;
    }

    private void enlarge(long bytes) {
        Arena arena = Arena.ofConfined();
        try {
            segment = arena.allocate(BYTES + bytes, 8);
            large = arena;
        } finally {
            if (large == null) {
                arena.close();
            }
        }
    }

    /** Prepares a call and returns the address of the memory, which is that of the error. */
    long begin() {
        used = BYTES;
        segment.set(JAVA_LONG, ERROR, 0);
        segment.set(JAVA_LONG, LENGTH, 0);
        return segment.address();
    }

    /** Returns the address of the memory, which is that of the error. */
    long address() {
        return segment.address();
    }

    /** Copies bytes into the memory and returns their address. */
    long copy(byte[] bytes, int from, int length) {
        MemorySegment.copy(bytes, from, segment, JAVA_BYTE, used, length);
        long at = segment.address() + used;
        used += length;
        return at;
    }

    /** Returns the address of the error that the call stored, 0 for none. */
    long error() {
        return segment.get(JAVA_LONG, ERROR);
    }

    long length() {
        return segment.get(JAVA_LONG, LENGTH);
    }

    boolean flag() {
        return segment.get(JAVA_BYTE, FLAG) != 0;
    }

    @Override
    public void close() {
        if (large != null) {
            Arena ended = large;
            large = null;
            segment = kept;
            ended.close();
        }
    }
}

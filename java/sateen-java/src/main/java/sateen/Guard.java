package sateen;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * Keeps a native object alive while calls use it. A call enters and leaves; a close refuses new calls,
 * waits for those inside, and may then free the object.
 */
final class Guard {
    private static final long CLOSED = Long.MIN_VALUE;

    private final String what;
    /** The number of calls inside; {@link #CLOSED} is set from the beginning of the close on. */
    private final AtomicLong state = new AtomicLong();

    Guard(String what) {
        this.what = what;
    }

    /** Begins a call, or throws {@link ClosedException}. */
    void enter() {
        if (state.incrementAndGet() < 0) {
            state.decrementAndGet();
            throw new ClosedException(what);
        }
    }

    /** Ends a call. */
    void leave() {
        state.decrementAndGet();
    }

    /** Makes a native object with the help of the one that {@code guard} keeps alive; null is none. */
    static long using(Guard guard, LongSupplier make) {
        if (guard == null) {
            return make.getAsLong();
        }
        guard.enter();
        try {
            return make.getAsLong();
        } finally {
            guard.leave();
        }
    }

    boolean isClosed() {
        return state.get() < 0;
    }

    /** Refuses new calls and waits for those inside. Returns false if it had been closed before. */
    boolean close() {
        long before;
        do {
            before = state.get();
            if (before < 0) {
                return false;
            }
        } while (!state.compareAndSet(before, before | CLOSED));
        // Calls are short, but for a flush or a compaction: so no one waits for a signal from each.
        for (int tries = 0; state.get() != CLOSED; tries++) {
            if (tries < 100) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(100_000);
            }
        }
        return true;
    }
}

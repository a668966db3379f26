package sateen.kafka;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;

/**
 * Which entries of a restoration are in no WAL, and which offsets must wait for them.
 *
 * <p>A restoration in bulk writes around the WAL: its records are in the changelog, and a WAL would have them
 * written twice. A crash loses such entries until a flush has stored them, so an offset that covers them
 * must not be stored before:
 *
 * <ol>
 * <li>{@link #unlogged} says for each batch whether it goes around the WAL, and counts it.
 * <li>{@link #mayStore} says whether the point of a commit may be stored at once. Otherwise {@link #keep}
 *     keeps it once the entries of the commit are written.
 * <li>{@link #committed} begins a flush, on another thread, if one is worth its while.
 * <li>{@link #store} flushes, and then stores the point that the flush covers.
 * </ol>
 *
 * <p>A task restores and commits in one thread, so that what a flush covers was written before it begins.
 */
final class Restoration {
    /** Bytes of records at the beginning of a restoration that are logged: a short one needs no flush. */
    static final long LOGGED_BYTES = 1 << 20;
    /** Unlogged bytes after which a commit begins a flush while a restoration goes on. */
    static final long FLUSH_BYTES = 16 << 20;
    /** Records of a batch below which it is logged. A standby that follows its task has few in each. */
    private static final int BULK_RECORDS = 100;

    /** The database, as a restoration sees it. */
    interface Target {
        /** Stores what is in the memtables, and returns when it is durable. */
        void flush();

        /** Stores the point that {@code covered} returns, unless it is null, while nothing else is written. */
        void storePoint(Supplier<Progress.CommitPoint> covered);
    }

    private final Target target;
    private final Executor flushes;
    /** The flush that runs or has ended last; null after its end was noted. */
    private CompletableFuture<Void> flush;
    /** Bytes of records since the task itself wrote to the store. */
    private long restored;
    /** Whether the last write was a batch in bulk. */
    private boolean going;
    /** Unlogged bytes in all, at the last commit, and as far as a flush has stored them. */
    private long unlogged;
    private long unloggedAtCommit;
    private long stored;
    /** The point of the last commit, if it waits, and the one that the flush covers. */
    private Progress.CommitPoint waiting;
    private Progress.CommitPoint covered;

    Restoration(Target target, Executor flushes) {
        this.target = target;
        this.flushes = flushes;
    }

    /** Returns whether a batch goes around the WAL. The caller writes it before the next commit. */
    synchronized boolean unlogged(int records, long bytes) {
        restored += bytes;
        going = records >= BULK_RECORDS && restored > LOGGED_BYTES;
        if (going) {
            unlogged += bytes;
        }
        return going;
    }

    /** Hears that the task itself writes: no restoration goes on. */
    synchronized void over() {
        restored = 0;
        going = false;
    }

    /** Returns whether the point of a commit may be stored at once. */
    synchronized boolean mayStore() {
        return stored == unlogged;
    }

    /** Keeps the point of a commit until a flush covers it. The entries of the commit are written. */
    synchronized void keep(Progress.CommitPoint point) {
        waiting = waiting == null ? point : point.after(waiting);
    }

    /** Forgets the point that waits. */
    synchronized void forget() {
        waiting = null;
        covered = null;
    }

    /** Returns the offset of a partition that waits, or null. */
    synchronized Long waiting(TopicPartition partition) {
        return waiting == null ? null : waiting.offsets.get(partition);
    }

    /** Begins a flush after a commit, if there is much to store or if nothing more was restored. */
    synchronized void committed() {
        boolean more = going && unlogged > unloggedAtCommit;
        unloggedAtCommit = unlogged;
        if (flush == null && stored < unlogged && (!more || unlogged - stored >= FLUSH_BYTES)) {
            covered = waiting;
            long bytes = unlogged;
            flush = CompletableFuture.runAsync(() -> store(bytes), flushes);
        }
    }

    /** Throws why a flush has failed, once. The next commit tries again. */
    void check() {
        CompletableFuture<Void> ended;
        synchronized (this) {
            if (flush == null || !flush.isDone()) {
                return;
            }
            ended = flush;
            flush = null;
        }
        join(ended);
    }

    /** Waits for the flush that runs, if one does, and throws why it has failed. */
    void await() {
        CompletableFuture<Void> running;
        synchronized (this) {
            running = flush;
            flush = null;
        }
        if (running != null) {
            join(running);
        }
    }

    /** Stores everything, on this thread. */
    void finish() {
        CompletableFuture<Void> running;
        synchronized (this) {
            running = flush;
            flush = null;
        }
        if (running != null) {
            // If it has failed, what it was to store is tried below.
            running.exceptionally(failed -> null).join();
        }
        long bytes;
        synchronized (this) {
            if (stored == unlogged) {
                return;
            }
            covered = waiting;
            bytes = unlogged;
        }
        store(bytes);
    }

    private void store(long bytes) {
        target.flush();
        target.storePoint(() -> stored(bytes));
    }

    /** Notes that a flush has stored so many bytes. Returns the point that is covered, or null. */
    private synchronized Progress.CommitPoint stored(long bytes) {
        stored = bytes;
        Progress.CommitPoint point = stored == unlogged ? waiting : covered;
        if (stored == unlogged) {
            waiting = null;
        }
        covered = null;
        return point;
    }

    private static void join(CompletableFuture<Void> ended) {
        try {
            ended.join();
        } catch (CompletionException failed) {
            if (failed.getCause() instanceof RuntimeException) {
                throw (RuntimeException) failed.getCause();
            }
            throw failed;
        }
    }
}

package sateen.kafka;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import sateen.Options;
import sateen.SharedRuntime;

/**
 * What all stores of one instance of an application share: the threads and the scheduler of their databases,
 * one block cache and one limit of memtables. An instance is known by its directory, which Kafka locks.
 *
 * <p>It is made with the first store and closed with the last one.
 */
final class InstanceRuntime {
    private static final Map<Path, InstanceRuntime> OPEN = new HashMap<>();

    private final Path directory;
    /** Null if each store has threads and memory of its own. */
    private final SharedRuntime shared;
    /** One thread, which ends when it has nothing to do. */
    private final ThreadPoolExecutor flushes;
    private int stores;

    private InstanceRuntime(Path directory, SateenConfig config) {
        this.directory = directory;
        flushes = new ThreadPoolExecutor(1, 1, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), work -> {
            Thread thread = new Thread(work, "sateen-restore");
            thread.setDaemon(true);
            return thread;
        });
        flushes.allowCoreThreadTimeOut(true);
        if (config.runtimeShared) {
            SharedRuntime.Builder builder = SharedRuntime.builder().memoryBudget(config.memoryBudget);
            shared = config.runtimeThreads > 0 ? builder.threads(config.runtimeThreads).build() : builder.build();
        } else {
            shared = null;
        }
    }

    /** Returns the runtime of the instance whose state is in a directory. Each call needs a {@link #leave}. */
    static InstanceRuntime enter(Path directory, SateenConfig config) {
        synchronized (OPEN) {
            InstanceRuntime runtime =
                OPEN.computeIfAbsent(directory, none -> new InstanceRuntime(directory, config));
            runtime.stores++;
            return runtime;
        }
    }

    /** Gives it up. The last store closes it. */
    void leave() {
        synchronized (OPEN) {
            stores--;
            if (stores == 0) {
                OPEN.remove(directory);
                flushes.shutdown();
                if (shared != null) {
                    shared.close();
                }
            }
        }
    }

    /** Returns options with which a database shares this. */
    Options options() {
        return new Options().runtime(shared);
    }

    /** Runs the flushes of restorations, one after the other, so that no task waits for them. */
    Executor flushes() {
        return flushes;
    }

    /** Returns the bytes in the block cache of all stores; 0 if each has its own. */
    long blockCacheUsage() {
        return shared == null ? 0 : shared.blockCacheUsage();
    }

    /** Returns the bytes of all memtables; 0 if each store has limits of its own. */
    long memtableUsage() {
        return shared == null ? 0 : shared.memtableUsage();
    }
}

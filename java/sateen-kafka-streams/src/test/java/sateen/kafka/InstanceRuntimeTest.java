package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.utils.Bytes;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The stores of an instance share one runtime, unless the configuration says otherwise. */
class InstanceRuntimeTest {
    private static final int STORES = 12;
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);

    @TempDir Path directory;

    private List<StateDatabase> open(String instance, Object... more) {
        List<StateDatabase> all = new ArrayList<>();
        for (int task = 0; task < STORES; task++) {
            all.add(States.open(directory.resolve(instance).resolve("0_" + task), true, more));
        }
        return all;
    }

    /** Returns the number of threads of this process that the engine started. */
    private static long threads() throws IOException {
        try (Stream<Path> tasks = Files.list(Path.of("/proc/self/task"))) {
            return tasks.filter(task -> {
                try {
                    return Files.readString(task.resolve("comm")).startsWith("sateen-");
                } catch (IOException ended) {
                    return false;
                }
            }).count();
        }
    }

    private static Bytes key(int nth) {
        return Bytes.wrap(("key" + nth).getBytes(StandardCharsets.US_ASCII));
    }

    @Test
    void theStoresOfAnInstanceShareThreadsAndMemory() throws Exception {
        long before = threads();
        List<StateDatabase> all = open("one", SateenConfig.RUNTIME_THREADS, 2, SateenConfig.MEMORY_BUDGET_BYTES, 8 << 20);
        long shared = threads() - before;
        assertTrue(shared > 2 && shared < 2 * STORES, shared + " threads of " + STORES + " stores");
        InstanceRuntime runtime = all.get(0).runtime();
        for (StateDatabase store : all) {
            assertSame(runtime, store.runtime());
            for (int nth = 0; nth < 100; nth++) {
                store.family("entries").put(key(nth), new byte[1000]);
            }
            store.commit(Map.of(CHANGELOG, 1L));
        }
        assertTrue(runtime.memtableUsage() >= STORES * 100_000L, runtime.memtableUsage() + " bytes of memtables");
        all.forEach(store -> store.family("entries").family.flush());
        for (StateDatabase store : all) {
            for (int nth = 0; nth < 100; nth++) {
                assertNotNull(store.family("entries").get(key(nth)));
            }
        }
        assertTrue(runtime.blockCacheUsage() > 0);
        // A store that is closed takes nothing from the others.
        all.get(0).close();
        all.get(1).family("entries").put(key(100), new byte[1000]);
        all.get(1).commit(Map.of(CHANGELOG, 2L));
        assertNotNull(all.get(1).family("entries").get(key(100)));
        StateDatabase later = States.open(directory.resolve("one/0_0"), true);
        assertSame(runtime, later.runtime(), "a store that comes later shares, too");
        later.close();
        all.forEach(StateDatabase::close);
    }

    @Test
    void theLastStoreClosesTheRuntime() throws Exception {
        long before = threads();
        List<StateDatabase> all = open("closed");
        InstanceRuntime runtime = all.get(0).runtime();
        all.forEach(StateDatabase::close);
        all.forEach(StateDatabase::close);
        assertEquals(before, threads());
        assertThrows(sateen.ClosedException.class, runtime::memtableUsage);
        // An open that fails gives up its part as well.
        assertThrows(org.apache.kafka.streams.errors.ProcessorStateException.class,
            () -> open("closed", SateenConfig.OPTIONS, "no_such_option=1"));
        List<StateDatabase> next = open("closed");
        assertTrue(runtime != next.get(0).runtime());
        next.forEach(StateDatabase::close);
        assertEquals(before, threads());
    }

    @Test
    void instancesAndStoresThatDoNotWishToShareDoNot() throws Exception {
        List<StateDatabase> one = open("a");
        List<StateDatabase> other = open("b");
        assertTrue(one.get(0).runtime() != other.get(0).runtime());
        one.forEach(StateDatabase::close);
        other.forEach(StateDatabase::close);
        long before = threads();
        List<StateDatabase> alone = open("alone", SateenConfig.RUNTIME_SHARED, "false", SateenConfig.OPTIONS,
            "sateen.block_cache_bytes=1MiB");
        assertTrue(threads() - before >= 2 * STORES, threads() - before + " threads");
        assertEquals(0, alone.get(0).runtime().blockCacheUsage());
        alone.forEach(StateDatabase::close);
    }

    @Test
    void memoryOfOneStoreIsRefusedByName() {
        for (String option : List.of("sateen.block_cache_bytes=1MiB", "write_buffer_size=1MiB; sateen.memory_budget = 1GiB",
                "block_based_table_factory={block_cache=1M}")) {
            for (String key : List.of(SateenConfig.OPTIONS, SateenConfig.STORE_OPTIONS_PREFIX + "store")) {
                ConfigException refused = assertThrows(ConfigException.class, () -> open("refused", key, option));
                assertTrue(refused.getMessage().contains(SateenConfig.MEMORY_BUDGET_BYTES)
                    && refused.getMessage().contains(key) && refused.getMessage().contains("block_cache")
                    || refused.getMessage().contains("sateen.memory_budget"), refused.getMessage());
            }
        }
        assertThrows(ConfigException.class, () -> open("refused", SateenConfig.RUNTIME_THREADS, "-1"));
        assertThrows(ConfigException.class, () -> open("refused", SateenConfig.RUNTIME_SHARED, "no"));
    }
}

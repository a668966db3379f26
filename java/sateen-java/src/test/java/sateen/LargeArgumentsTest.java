package sateen;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Native memory for large keys and values ends with the call: the garbage collector frees none. */
class LargeArgumentsTest {
    private static final int MIB = 1 << 20;

    @TempDir Path directory;

    /** Returns the native memory that the JVM accounts for, which the Java 22 backend uses. */
    private static long nativeMemory() {
        return ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
            .filter(pool -> pool.getName().equals("direct"))
            .mapToLong(BufferPoolMXBean::getMemoryUsed).sum();
    }

    private static byte[] filled(int length, int with) {
        byte[] made = new byte[length];
        Arrays.fill(made, (byte) with);
        return made;
    }

    private Database open() {
        return Database.open(directory.resolve("db"), new Options().mergeAdd64());
    }

    @Test
    void valuesOfOneMebibyteInALoopKeepNoMemory() {
        byte[] key = {1};
        byte[] value = filled(MIB, 7);
        try (Database database = open()) {
            database.put(key, value);
            long before = nativeMemory();
            for (int nth = 0; nth < 100; nth++) {
                database.put(key, value);
                try (WriteBatch batch = new WriteBatch()) {
                    batch.put(database.defaultColumnFamily(), key, value);
                    database.write(batch);
                }
            }
            assertTrue(nativeMemory() - before < 10 * MIB,
                before + " bytes before, " + nativeMemory() + " after");
            assertArrayEquals(value, database.get(key));
        }
    }

    @Test
    void eachCallTakesLargeAndThenSmallArrays() {
        // A key has up to 65,535 bytes. Two of these, or one with a value, are more than the memory
        // that a thread keeps.
        byte[] large = filled(60_000, 'l');
        byte[] larger = filled(65_535, 'm');
        byte[] small = {'s'};
        byte[] value = filled(128 << 10, 'v');
        try (Database database = open()) {
            ColumnFamily family = database.defaultColumnFamily();
            for (byte[] key : new byte[][] {large, small, larger, small, large}) {
                byte[] behind = key.clone();
                behind[key.length - 1]++;
                database.put(key, value);
                assertArrayEquals(value, database.get(key));
                try (Cursor cursor = family.cursor(ReadOptions.DEFAULT.between(key, behind))) {
                    assertTrue(cursor.seek(key));
                    assertArrayEquals(key, cursor.key());
                    assertTrue(cursor.seekForPrevious(value));
                    assertArrayEquals(value, cursor.value());
                }
                family.compact(key, behind);
                family.deleteRange(key, behind, WriteOptions.DEFAULT);
                assertNull(database.get(key));
                try (WriteBatch batch = new WriteBatch()) {
                    batch.put(family, key, value).put(family, small, small);
                    database.write(batch);
                    assertArrayEquals(key == small ? small : value, database.get(key));
                    batch.clear();
                    batch.deleteRange(family, key, behind).delete(family, small);
                    database.write(batch);
                }
                assertNull(database.get(key));
                assertNull(database.get(small));
                SateenException refused = assertThrows(SateenException.class,
                    () -> database.put(value, value));
                assertEquals(SateenException.Kind.INVALID_ARGUMENT, refused.kind());
                database.merge(key, new byte[8]);
                assertArrayEquals(new byte[8], database.get(key));
                database.delete(key);
                assertNull(database.get(key));
            }
        }
    }
}

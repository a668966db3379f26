package sateen;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DatabaseTest {
    @TempDir Path directory;

    static byte[] b(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String s(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    private Database open() {
        return Database.open(directory.resolve("db"), new Options());
    }

    @Test
    void theBackendIsTheOneOfThisJava() {
        String wanted = System.getProperty("sateen.backend", "auto");
        String expected = wanted.equals("jni") || Runtime.version().feature() < 22 ? "jni" : "ffm";
        assertEquals(expected, Native.CALLS.name());
    }

    @Test
    void whatWasPutIsThereAfterANewOpen() {
        try (Database database = open()) {
            database.put(b("walden"), b("Thoreau"));
            database.put(b("typee"), b("Melville"));
            database.put(b("empty"), new byte[0]);
            database.delete(b("typee"));
            assertEquals("Thoreau", s(database.get(b("walden"))));
            assertNull(database.get(b("typee")));
        }
        try (Database database = open()) {
            assertEquals("Thoreau", s(database.get(b("walden"))));
            assertArrayEquals(new byte[0], database.get(b("empty")));
            assertNull(database.get(b("typee")));
        }
    }

    @Test
    void valuesLargerThanTheThreadsMemoryPass() {
        try (Database database = open()) {
            for (int size : new int[] {511, 512, 513, 65_535, 65_536, 65_537, 3 << 20}) {
                byte[] value = new byte[size];
                new java.util.Random(size).nextBytes(value);
                database.put(b("k" + size), value);
                assertArrayEquals(value, database.get(b("k" + size)));
            }
        }
    }

    @Test
    void aGetCopiesIntoArraysAndBuffers() {
        try (Database database = open()) {
            ColumnFamily family = database.defaultColumnFamily();
            database.put(b("k"), b("value"));
            byte[] into = new byte[10];
            assertEquals(5, family.get(b("k"), into, 2, 8));
            assertEquals("value", new String(into, 2, 5, StandardCharsets.UTF_8));
            assertEquals(5, family.get(b("k"), new byte[3], 0, 3), "the whole length, and no copy");
            assertEquals(-1, family.get(b("absent"), into, 0, 10));
            assertThrows(IndexOutOfBoundsException.class, () -> family.get(b("k"), into, 5, 6));

            ByteBuffer key = ByteBuffer.allocateDirect(8).put((byte) 'x').put((byte) 'k').flip().position(1);
            for (ByteBuffer buffer : List.of(ByteBuffer.allocateDirect(16), ByteBuffer.allocate(16))) {
                buffer.position(3);
                assertEquals(5, family.get(key, buffer));
                assertEquals(8, buffer.position());
                buffer.flip().position(3);
                assertEquals("value", StandardCharsets.UTF_8.decode(buffer).toString());
                buffer.clear().limit(4);
                assertEquals(5, family.get(key, buffer));
                assertEquals(0, buffer.position(), "a value that does not fit is not copied");
            }
            assertEquals(-1, family.get(ByteBuffer.allocateDirect(1), ByteBuffer.allocateDirect(1)));
            assertThrows(java.nio.ReadOnlyBufferException.class,
                () -> family.get(key, ByteBuffer.allocateDirect(9).asReadOnlyBuffer()));

            ByteBuffer value = ByteBuffer.allocateDirect(4).put(b("four")).flip();
            family.put(key, value, WriteOptions.DEFAULT);
            assertEquals("four", s(database.get(b("k"))));
            family.put(ByteBuffer.wrap(b("heap")), value.duplicate(), WriteOptions.SYNC);
            assertEquals("four", s(database.get(b("heap"))));
        }
    }

    @Test
    void aBufferOfAClosedArenaIsRefused() throws Exception {
        assumeTrue(Native.CALLS.name().equals("ffm"), "JNI cannot tell whether memory was freed");
        // The tests are compiled for a Java without arenas.
        Class<?> arenas = Class.forName("java.lang.foreign.Arena");
        Class<?> segments = Class.forName("java.lang.foreign.MemorySegment");
        AutoCloseable arena = (AutoCloseable) arenas.getMethod("ofShared").invoke(null);
        Object memory = arenas.getMethod("allocate", long.class).invoke(arena, 16L);
        ByteBuffer closed = (ByteBuffer) segments.getMethod("asByteBuffer").invoke(memory);
        ByteBuffer open = ByteBuffer.allocateDirect(16);
        try (Database database = open()) {
            ColumnFamily family = database.defaultColumnFamily();
            family.put(closed, closed, WriteOptions.DEFAULT);
            assertEquals(16, family.get(closed, open));
            open.clear();
            arena.close();
            assertThrows(IllegalStateException.class, () -> family.put(closed, open, WriteOptions.DEFAULT));
            assertThrows(IllegalStateException.class, () -> family.put(open, closed, WriteOptions.DEFAULT));
            assertThrows(IllegalStateException.class, () -> family.get(closed, open));
            assertThrows(IllegalStateException.class, () -> family.get(open, closed));
        }
    }

    @Test
    void aCursorGoesBothWays() {
        try (Database database = open()) {
            for (String key : List.of("a", "b", "c", "d")) {
                database.put(b(key), b("of " + key));
            }
            try (Cursor cursor = database.cursor()) {
                assertFalse(cursor.isValid());
                assertThrows(java.util.NoSuchElementException.class, cursor::key);
                List<String> seen = new ArrayList<>();
                for (boolean found = cursor.seek(b("b")); found; found = cursor.next()) {
                    seen.add(s(cursor.key()) + "=" + s(cursor.value()));
                }
                assertEquals(List.of("b=of b", "c=of c", "d=of d"), seen);
                assertThrows(java.util.NoSuchElementException.class, cursor::next);
                assertTrue(cursor.seekForPrevious(b("cc")));
                assertEquals("c", s(cursor.key()));
                assertTrue(cursor.previous());
                assertEquals("b", s(cursor.key()));
                assertTrue(cursor.seekToLast());
                ByteBuffer buffer = ByteBuffer.allocateDirect(8);
                assertEquals(4, cursor.value(buffer));
                assertEquals("of d", StandardCharsets.UTF_8.decode(buffer.flip()).toString());
                assertFalse(cursor.next());
            }
            ReadOptions between = ReadOptions.DEFAULT.between(b("b"), b("d")).withoutFillingCache();
            try (Cursor cursor = database.defaultColumnFamily().cursor(between)) {
                assertTrue(cursor.seekToFirst());
                assertEquals("b", s(cursor.key()));
                assertTrue(cursor.seekToLast());
                assertEquals("c", s(cursor.key()));
            }
        }
    }

    @Test
    void aSnapshotShowsTheStateOfItsMoment() {
        try (Database database = open()) {
            database.put(b("k"), b("old"));
            try (Snapshot snapshot = database.snapshot()) {
                database.put(b("k"), b("new"));
                ReadOptions then = ReadOptions.DEFAULT.at(snapshot);
                assertEquals("old", s(database.defaultColumnFamily().get(b("k"), then)));
                try (Cursor cursor = database.defaultColumnFamily().cursor(then)) {
                    snapshot.close();
                    assertTrue(cursor.seekToFirst());
                    assertEquals("old", s(cursor.value()), "the cursor keeps what it needs");
                }
                assertThrows(ClosedException.class, () -> database.defaultColumnFamily().get(b("k"), then));
            }
            try (Database other = Database.open(directory.resolve("other"), new Options());
                 Snapshot foreign = other.snapshot()) {
                assertThrows(IllegalArgumentException.class,
                    () -> database.defaultColumnFamily().get(b("k"), ReadOptions.DEFAULT.at(foreign)));
            }
        }
    }

    @Test
    void aBatchIsWrittenWholeAcrossColumnFamilies() {
        try (Database database = open(); WriteBatch batch = new WriteBatch()) {
            ColumnFamily loans = database.createColumnFamily("loans", new Options());
            ColumnFamily main = database.defaultColumnFamily();
            database.put(b("gone"), b("x"));
            batch.put(main, b("a"), b("1")).put(loans, b("a"), b("2")).delete(main, b("gone"))
                .put(loans, b("b"), b("3")).deleteRange(loans, b("b"), b("c"));
            assertEquals(5, batch.count());
            assertTrue(batch.bytes() >= 10);
            database.write(batch, WriteOptions.SYNC);
            assertEquals("1", s(main.get(b("a"))));
            assertEquals("2", s(loans.get(b("a"))));
            assertNull(main.get(b("gone")));
            assertNull(loans.get(b("b")));
            batch.clear();
            assertEquals(0, batch.count());
            batch.put(main, b("again"), b("!"));
            database.write(batch);
            assertEquals("!", s(database.get(b("again"))));
        }
        try (Database database = open()) {
            assertEquals("2", s(database.columnFamily("loans").orElseThrow().get(b("a"))));
            assertEquals(2, database.columnFamilies().size());
        }
    }

    @Test
    void aBatchCountsAWriteThatItRefusesAndFails() {
        try (Database database = open(); WriteBatch batch = new WriteBatch()) {
            batch.put(database.defaultColumnFamily(), new byte[70_000], b("v"));
            assertEquals(1, batch.count());
            SateenException refused = assertThrows(SateenException.class, () -> database.write(batch));
            assertTrue(refused.getMessage().contains("70000"), refused.getMessage());
            batch.clear();
            batch.put(database.defaultColumnFamily(), b("k"), b("v"));
            database.write(batch);
            assertEquals("v", s(database.get(b("k"))));
        }
    }

    @Test
    void columnFamiliesAreCreatedAndDropped() {
        try (Database database = open()) {
            ColumnFamily loans = database.createColumnFamily("loans", new Options());
            loans.put(b("k"), b("v"));
            loans.flush();
            SateenException twice = assertThrows(SateenException.class,
                () -> database.createColumnFamily("loans", new Options()));
            assertTrue(twice.getMessage().contains("loans"), twice.getMessage());
            try (Cursor cursor = loans.cursor()) {
                database.dropColumnFamily(loans);
                assertTrue(cursor.seekToFirst(), "a cursor outlives the drop");
            }
            assertThrows(ClosedException.class, () -> loans.get(b("k")));
            assertThrows(ClosedException.class, () -> database.dropColumnFamily(loans));
            assertEquals(Optional.empty(), database.columnFamily("loans"));
            assertThrows(IllegalArgumentException.class,
                () -> database.dropColumnFamily(database.defaultColumnFamily()));
        }
    }

    @Test
    void operandsAreMerged() {
        Options options = new Options().mergeAdd64();
        try (Database database = Database.open(directory.resolve("db"), options)) {
            byte[] one = {1, 0, 0, 0, 0, 0, 0, 0};
            database.merge(b("n"), one);
            database.merge(b("n"), one);
            assertArrayEquals(new byte[] {2, 0, 0, 0, 0, 0, 0, 0}, database.get(b("n")));
        }
    }

    @Test
    void aMergeWithoutAnOperatorIsAnError() {
        try (Database database = open()) {
            SateenException refused =
                assertThrows(SateenException.class, () -> database.merge(b("n"), b("1")));
            assertTrue(refused.getMessage().contains("merge"), refused.getMessage());
        }
    }

    @Test
    void anUnknownOptionIsNamed() {
        SateenException unknown = assertThrows(SateenException.class, () -> Database.open(
            directory.resolve("db"), new Options().set("write_bufer_size", "64MiB")));
        assertEquals(SateenException.Kind.INVALID_ARGUMENT, unknown.kind());
        assertTrue(unknown.getMessage().contains("write_bufer_size"), unknown.getMessage());
        assertTrue(unknown.getMessage().contains("write_buffer_size"), unknown.getMessage());
        SateenException value = assertThrows(SateenException.class, () -> Database.open(
            directory.resolve("db"), new Options().set("write_buffer_size", "much")));
        assertTrue(value.getMessage().contains("much"), value.getMessage());
        assertThrows(IllegalArgumentException.class, () -> new Options().set("a", "1;b=2"));
        assertThrows(IllegalArgumentException.class, () -> new Options().set("a=b", "1"));
        assertThrows(IllegalArgumentException.class, () -> new Options().setAll("write_buffer_size"));
        assertEquals("create_if_missing=true;write_buffer_size=1M;t={a=1;b=2}",
            new Options().setAll("write_buffer_size=1M; t={a=1;b=2} ;").toString());
    }

    @Test
    void optionsChangeWhileOpen() {
        try (Database database = open()) {
            database.defaultColumnFamily().setOption("write_buffer_size", "1048576");
            SateenException refused = assertThrows(SateenException.class,
                () -> database.defaultColumnFamily().setOption("no_such_option", "1"));
            assertTrue(refused.getMessage().contains("no_such_option"), refused.getMessage());
        }
    }

    @Test
    void aSecondOpenIsRefused() {
        try (Database database = open()) {
            SateenException refused = assertThrows(SateenException.class, this::open);
            assertTrue(refused.getMessage().contains(directory.resolve("db").toString()),
                refused.getMessage());
        }
    }

    @Test
    void aMissingDatabaseIsAnErrorIfItMayNotBeCreated() {
        Options options = new Options().set("create_if_missing", false);
        assertThrows(SateenException.class, () -> Database.open(directory.resolve("none"), options));
        assertFalse(Files.exists(directory.resolve("none/CURRENT")));
        assertThrows(SateenException.class,
            () -> Database.openReadOnly(directory.resolve("none"), new Options()));
    }

    @Test
    void onlyTheReasonOfAnErrorSaysThatTheDiskIsFull() {
        Options options = new Options().set("create_if_missing", false);
        for (String name : List.of("nospace", "no space left", "quota exceeded", "(os error 28)")) {
            SateenException missing = assertThrows(SateenException.class,
                () -> Database.open(directory.resolve(name).resolve("db"), options));
            assertNotEquals(SateenException.Kind.NO_SPACE, missing.kind(), missing.getMessage());
        }
        String write = "IO error: write /tmp/no space left: nospace/db/000001.log: ";
        assertEquals(SateenException.Kind.IO_ERROR,
            SateenException.of(write + "Permission denied (os error 13)").kind());
        assertEquals(SateenException.Kind.NO_SPACE,
            SateenException.of(write + "No space left on device (os error 28)").kind());
        assertEquals(SateenException.Kind.NO_SPACE,
            SateenException.of(write + "Disk quota exceeded (os error 122)").kind());
        // The JVM sets the locale of the C library, which words the reason.
        assertEquals(SateenException.Kind.NO_SPACE,
            SateenException.of(write + "Espace insuffisant (os error 28)").kind());
    }

    @Test
    void aReaderSeesAndCannotWrite() {
        try (Database database = open()) {
            database.put(b("k"), b("v"));
        }
        try (Database reader = Database.openReadOnly(directory.resolve("db"), new Options())) {
            assertEquals("v", s(reader.get(b("k"))));
            assertThrows(SateenException.class, () -> reader.put(b("k"), b("w")));
        }
    }

    @Test
    void checkpointsAndBackupsAreDatabases() {
        Path backups = directory.resolve("backups");
        try (Database database = open()) {
            database.put(b("k"), b("1"));
            database.checkpoint(directory.resolve("checkpoint"));
            try (Backups engine = Backups.open(backups)) {
                engine.create(database);
                database.put(b("k"), b("2"));
                engine.create(database);
                assertEquals(2, engine.list().size());
                assertTrue(engine.list().get(0).bytes() > 0);
                engine.verify(1);
                engine.restore(1, directory.resolve("restored"));
                engine.keepNewest(1);
                assertEquals(2, engine.list().get(0).number());
                assertThrows(SateenException.class, () -> engine.verify(1));
            }
            assertThrows(SateenException.class, () -> database.checkpoint(directory.resolve("checkpoint")));
        }
        for (String copy : List.of("checkpoint", "restored")) {
            try (Database database = Database.open(directory.resolve(copy), new Options())) {
                assertEquals("1", s(database.get(b("k"))));
            }
        }
        Database.destroy(directory.resolve("restored"), new Options());
        assertFalse(Files.exists(directory.resolve("restored/CURRENT")));
    }

    @Test
    void metricsAndPropertiesAreRead() {
        Options options = new Options().statistics();
        try (Cache cache = new Cache(8 << 20); WriteBufferManager buffers = new WriteBufferManager(8 << 20);
             Database database = Database.open(directory.resolve("db"),
                new Options(options).cache(cache).writeBufferManager(buffers))) {
            database.put(b("k"), b("v"));
            database.defaultColumnFamily().flush();
            database.defaultColumnFamily().compact(null, null);
            database.get(b("k"));
            database.syncWal();
            assertTrue(database.latestSequenceNumber() >= 1);
            assertTrue(cache.usage() >= 0);
            assertEquals(Optional.of("1"), database.property("rocksdb.estimate-num-keys"));
            assertEquals(Optional.empty(), database.property("rocksdb.no-such-property"));
            assertNotEquals(0, database.metrics().getOrDefault("rocksdb.bytes.written", 0L));
            Histogram flushes = database.histogram("rocksdb.db.flush.micros");
            assertEquals(database.metrics().get("rocksdb.db.flush.micros.count"), flushes.count());
            assertTrue(flushes.count() >= 1 && flushes.minimum() > 0
                && flushes.minimum() <= flushes.average() && flushes.average() <= flushes.maximum()
                && flushes.median() <= flushes.p95() && flushes.p95() <= flushes.p99(),
                flushes.toString());
            // The sum has whole microseconds.
            assertEquals(flushes.average() * flushes.count(), flushes.sum(), 1, flushes.toString());
            IllegalArgumentException unknown = assertThrows(IllegalArgumentException.class,
                () -> database.histogram("rocksdb.no.such.histogram"));
            assertTrue(unknown.getMessage().contains("rocksdb.db.flush.micros"));
        }
        try (Database database = open()) {
            assertTrue(database.metrics().isEmpty());
            assertEquals(0, database.histogram("rocksdb.db.flush.micros").count());
        }
    }

    @Test
    void writesWithoutAWalAreKeptByAClose() {
        try (Database database = open()) {
            database.defaultColumnFamily().put(b("k"), b("v"), WriteOptions.WITHOUT_WAL.withLowPriority());
        }
        try (Database database = open()) {
            assertEquals("v", s(database.get(b("k"))));
        }
    }
}

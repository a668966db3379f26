package sateen.kafka;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import sateen.ColumnFamily;
import sateen.Cursor;
import sateen.Database;
import sateen.WriteBatch;
import sateen.WriteOptions;

/**
 * What the names of a store's families, its keys and its values mean. The database records it
 * beside its offsets. A store of another shape would misread what is there, so it begins empty:
 *
 * <ol>
 * <li>Remove the offsets and the record, durably. What is left then counts as another shape.
 * <li>Drop the families.
 * <li>Record the new shape. Every offset is written after it.
 * </ol>
 */
final class Shape {
    private static final Logger LOG = LoggerFactory.getLogger(Shape.class);
    private static final byte[] KEY = "shape".getBytes(StandardCharsets.UTF_8);
    /** Changes with the layout of keys and values that all stores have. */
    private static final int LAYOUT = 1;

    private Shape() {}

    /** Returns the shape of a store: its kind, the format of its values, and {@code more}. */
    static String of(String kind, StateStore store, String more) {
        String format = store instanceof HeadersBytesStore ? "headers"
            : store instanceof TimestampedBytesStore ? "timestamped" : "plain";
        return kind + " values=" + format + more + " layout=" + LAYOUT;
    }

    /** Empties a database whose shape is another one or unknown, and records the shape. */
    static void settle(Database database, String store, String shape) {
        ColumnFamily progress = database.defaultColumnFamily();
        byte[] stored = progress.get(KEY);
        String before = stored == null ? "unknown" : new String(stored, StandardCharsets.UTF_8);
        if (before.equals(shape)) {
            return;
        }
        List<ColumnFamily> families = new ArrayList<>(database.columnFamilies());
        families.remove(progress);
        if (!families.isEmpty() || !isEmpty(progress)) {
            LOG.warn("The store {} in {} is emptied, and restored from its changelog if it has one:"
                + " its shape was [{}], and is now [{}].", store, database.path(), before, shape);
            try (WriteBatch batch = new WriteBatch()) {
                Progress.addNothing(batch, progress);
                batch.delete(progress, KEY);
                database.write(batch, WriteOptions.SYNC);
            }
            families.forEach(database::dropColumnFamily);
        }
        try (WriteBatch batch = new WriteBatch()) {
            batch.put(progress, KEY, shape.getBytes(StandardCharsets.UTF_8));
            database.write(batch);
        }
    }

    private static boolean isEmpty(ColumnFamily family) {
        try (Cursor cursor = family.cursor()) {
            return !cursor.seekToFirst();
        }
    }
}

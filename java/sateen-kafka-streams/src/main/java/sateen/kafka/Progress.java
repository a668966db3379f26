package sateen.kafka;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.PositionSerde;
import sateen.ColumnFamily;
import sateen.Cursor;
import sateen.ReadOptions;
import sateen.WriteBatch;

/**
 * How far a store is: its offsets in the changelog, its position, the time of its stream, and the mark that
 * it has entries that may not be committed. The column family {@code default} has them.
 */
final class Progress {
    private static final byte[] POSITION = bytes("position");
    private static final byte[] UNCOMMITTED = bytes("uncommitted");
    private static final byte[] STREAM_TIME = bytes("stream-time");
    private static final byte[] OFFSETS = bytes("offset:");
    /** The first key behind all offsets. */
    private static final byte[] OFFSETS_END = bytes("offset;");

    /** The offsets of a commit, with the position and the time of the stream at that moment. */
    static final class CommitPoint {
        final Map<TopicPartition, Long> offsets;
        private final byte[] position;
        private final long streamTime;

        private CommitPoint(Map<TopicPartition, Long> offsets, byte[] position, long streamTime) {
            this.offsets = offsets;
            this.position = position;
            this.streamTime = streamTime;
        }

        /** Returns this point with the offsets of an earlier one if it has none. */
        CommitPoint after(CommitPoint earlier) {
            return offsets.isEmpty() ? new CommitPoint(earlier.offsets, position, streamTime) : this;
        }
    }

    private final ColumnFamily stored;
    private final Position position;
    /** Whether the disk has entries that may belong to an open transaction. */
    private boolean uncommitted;
    /** Whether an offset is stored. */
    private boolean known;
    private long streamTime;

    Progress(ColumnFamily stored) {
        this.stored = stored;
        byte[] place = stored.get(POSITION);
        position = place == null ? Position.emptyPosition() : PositionSerde.deserialize(ByteBuffer.wrap(place));
        uncommitted = stored.get(UNCOMMITTED) != null;
        byte[] time = stored.get(STREAM_TIME);
        streamTime = time == null ? -1 : ByteBuffer.wrap(time).getLong();
        try (Cursor offsets = stored.cursor(ReadOptions.DEFAULT.between(OFFSETS, OFFSETS_END))) {
            known = offsets.seekToFirst();
        }
    }

    Position position() {
        return position;
    }

    long streamTime() {
        return streamTime;
    }

    void streamTime(long time) {
        streamTime = time;
    }

    boolean isUncommitted() {
        return uncommitted;
    }

    boolean isKnown() {
        return known;
    }

    /** Returns the offset that is stored for a partition, or null. */
    Long offset(TopicPartition partition) {
        byte[] offset = stored.get(key(partition));
        return offset == null ? null : ByteBuffer.wrap(offset).getLong();
    }

    /** Adds that entries of the batch may not be committed. */
    void addMark(WriteBatch batch) {
        batch.put(stored, UNCOMMITTED, new byte[] {1});
    }

    /** Adds that all entries are committed. */
    void addCommit(WriteBatch batch) {
        if (uncommitted) {
            batch.delete(stored, UNCOMMITTED);
        }
    }

    /** Notes that a batch with or without the mark was written. */
    void wrote(boolean mark) {
        uncommitted = mark;
    }

    /** Adds that nothing is known of a store. */
    static void addNothing(WriteBatch batch, ColumnFamily stored) {
        batch.deleteRange(stored, OFFSETS, OFFSETS_END);
        batch.delete(stored, POSITION).delete(stored, STREAM_TIME).delete(stored, UNCOMMITTED);
    }

    /** Adds that no offset is known. */
    void addNoOffsets(WriteBatch batch) {
        batch.deleteRange(stored, OFFSETS, OFFSETS_END);
        known = false;
    }

    /** Returns the point of a commit with these offsets. Call it without the lock of the database. */
    CommitPoint point(Map<TopicPartition, Long> offsets) {
        // A query holds the position while it waits for that lock.
        synchronized (position) {
            return new CommitPoint(offsets, PositionSerde.serialize(position).array(), streamTime);
        }
    }

    /** Adds offsets, the position and the time. An offset of null removes that of its partition. */
    void addPoint(WriteBatch batch, CommitPoint point) {
        point.offsets.forEach((partition, offset) -> {
            if (offset == null) {
                batch.delete(stored, key(partition));
            } else {
                batch.put(stored, key(partition), number(offset));
                known = true;
            }
        });
        batch.put(stored, POSITION, point.position);
        if (point.streamTime >= 0) {
            batch.put(stored, STREAM_TIME, number(point.streamTime));
        }
    }

    private static byte[] number(long number) {
        return ByteBuffer.allocate(8).putLong(number).array();
    }

    private static byte[] key(TopicPartition partition) {
        return bytes("offset:" + partition);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}

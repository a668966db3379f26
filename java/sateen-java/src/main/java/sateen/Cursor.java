package sateen;

import java.nio.ByteBuffer;
import java.util.NoSuchElementException;
import java.util.Objects;

/**
 * A position among the entries of a column family. It shows the data of the moment at which it was made.
 * A movement returns whether it found an entry; an error of the engine is thrown by the movement that
 * meets it.
 *
 * <pre>{@code
 * try (Cursor cursor = family.cursor()) {
 *     for (boolean found = cursor.seekToFirst(); found; found = cursor.next()) {
 *         use(cursor.key(), cursor.value());
 *     }
 * }
 * }</pre>
 *
 * <p>A cursor is for one thread at a time. If several use it, each call is whole, and none crashes.
 */
public final class Cursor implements AutoCloseable {
    private final Database database;
    private long handle;
    private boolean valid;

    Cursor(Database database, long handle) {
        this.database = database;
        this.handle = handle;
    }

    private long open() {
        if (handle == 0) {
            throw new ClosedException("the cursor");
        }
        return handle;
    }

    private boolean moved(boolean found) {
        valid = found;
        if (!found) {
            Native.CALLS.checkIterator(handle);
        }
        return found;
    }

    private long current() {
        long iterator = open();
        if (!valid) {
            throw new NoSuchElementException("the cursor is not at an entry");
        }
        return iterator;
    }

    /** Moves to the first entry. */
    public synchronized boolean seekToFirst() {
        return moved(Native.CALLS.seekFirst(open()));
    }

    /** Moves to the last entry. */
    public synchronized boolean seekToLast() {
        return moved(Native.CALLS.seekLast(open()));
    }

    /** Moves to the first entry with a key that is not below {@code key}. */
    public synchronized boolean seek(byte[] key) {
        return moved(Native.CALLS.seek(open(), Objects.requireNonNull(key, "key")));
    }

    /** Moves to the last entry with a key that is not above {@code key}. */
    public synchronized boolean seekForPrevious(byte[] key) {
        return moved(Native.CALLS.seekForPrevious(open(), Objects.requireNonNull(key, "key")));
    }

    /** Moves to the next entry. The cursor must be at one. */
    public synchronized boolean next() {
        return moved(Native.CALLS.next(current()));
    }

    /** Moves to the previous entry. The cursor must be at one. */
    public synchronized boolean previous() {
        return moved(Native.CALLS.previous(current()));
    }

    /** Returns whether the cursor is at an entry. */
    public synchronized boolean isValid() {
        open();
        return valid;
    }

    /** Returns the key of the entry. */
    public synchronized byte[] key() {
        return Native.CALLS.key(current());
    }

    /** Returns the value of the entry. */
    public synchronized byte[] value() {
        return Native.CALLS.value(current());
    }

    /**
     * Copies the value into a direct buffer from its position on, advances the position, and returns the
     * length of the value. A value that does not fit is not copied.
     */
    public synchronized int value(ByteBuffer into) {
        if (!into.isDirect() || into.isReadOnly()) {
            throw new IllegalArgumentException("a value needs a direct buffer that can be written");
        }
        int length = Native.CALLS.value(current(), into);
        if (length <= into.remaining()) {
            into.position(into.position() + length);
        }
        return length;
    }

    @Override
    public void close() {
        database.forget(this);
        closeNow();
    }

    /** Frees the native object, once, after a call of another thread. */
    synchronized void closeNow() {
        if (handle != 0) {
            Native.CALLS.freeIterator(handle);
            handle = 0;
            valid = false;
        }
    }
}

package sateen;

/** The state of a database at one moment. It costs the space of what is overwritten meanwhile. */
public final class Snapshot implements AutoCloseable {
    private final Database database;
    final Guard guard = new Guard("the snapshot");
    final long handle;

    Snapshot(Database database, long handle) {
        this.database = database;
        this.handle = handle;
    }

    boolean belongsTo(Database other) {
        return database == other;
    }

    @Override
    public void close() {
        database.forget(this);
        closeNow();
    }

    /** Frees the native object, once. */
    void closeNow() {
        if (guard.close()) {
            Native.CALLS.freeSnapshot(database.handle, handle);
        }
    }
}

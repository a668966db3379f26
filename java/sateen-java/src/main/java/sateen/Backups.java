package sateen;

import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** A directory of backups. Backups in one directory share the tables that they have in common. */
public final class Backups implements AutoCloseable {
    /** What one backup is. */
    public static final class Backup {
        private final int number;
        private final Instant time;
        private final long bytes;
        private final int files;

        Backup(long number, long seconds, long bytes, long files) {
            this.number = (int) number;
            this.time = Instant.ofEpochSecond(seconds);
            this.bytes = bytes;
            this.files = (int) files;
        }

        /** Returns the number by which it is restored. */
        public int number() {
            return number;
        }

        /** Returns when it was made. */
        public Instant time() {
            return time;
        }

        /** Returns the bytes of its files, shared ones included. */
        public long bytes() {
            return bytes;
        }

        /** Returns the number of its files. */
        public int files() {
            return files;
        }
    }

    private final Guard guard = new Guard("the directory of backups");
    private final long handle;
    private final long options;

    private Backups(long handle, long options) {
        this.handle = handle;
        this.options = options;
    }

    /** Opens a directory of backups, and creates it if it is missing. */
    public static Backups open(Path path) {
        long made = new Options().make();
        try {
            Backups backups = new Backups(Native.CALLS.backups(path.toString(), made), made);
            made = 0;
            return backups;
        } finally {
            if (made != 0) {
                Native.CALLS.freeOptions(made);
            }
        }
    }

    /** Makes a backup of an open database. */
    public void create(Database database) {
        call(() -> {
            database.guard.enter();
            try {
                Native.CALLS.backUp(handle, database.handle, true);
            } finally {
                database.guard.leave();
            }
        });
    }

    /** Returns the backups, the oldest first. */
    public List<Backup> list() {
        List<Backup> list = new ArrayList<>();
        call(() -> {
            long[] found = Native.CALLS.listBackups(handle);
            for (int at = 0; at < found.length; at += 4) {
                list.add(new Backup(found[at], found[at + 1], found[at + 2], found[at + 3]));
            }
        });
        return list;
    }

    /** Restores a backup into a directory that has no open database. */
    public void restore(int number, Path target) {
        call(() -> Native.CALLS.restore(handle, number, target.toString()));
    }

    /** Removes all but the newest {@code count} backups. */
    public void keepNewest(int count) {
        if (count < 0) {
            throw new IllegalArgumentException("the number of backups to keep is " + count);
        }
        call(() -> Native.CALLS.keepBackups(handle, count));
    }

    /** Reads all files of a backup and verifies them. */
    public void verify(int number) {
        call(() -> Native.CALLS.verifyBackup(handle, number));
    }

    private void call(Runnable call) {
        guard.enter();
        try {
            call.run();
        } finally {
            guard.leave();
        }
    }

    @Override
    public void close() {
        if (guard.close()) {
            Native.CALLS.freeBackups(handle);
            Native.CALLS.freeOptions(options);
        }
    }
}

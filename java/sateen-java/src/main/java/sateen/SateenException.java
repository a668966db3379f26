package sateen;

import java.util.Locale;

/** An error of the engine. Its text names what failed, on which thing, and why. */
public class SateenException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** What kind of error it is. */
    public enum Kind {
        /** An argument, an option or the state of the directory is not usable. */
        INVALID_ARGUMENT,
        /** What was named is not there. */
        NOT_FOUND,
        /** Bytes on the disk are damaged. */
        CORRUPTION,
        /** The disk or the quota is full. The database goes on once there is room. */
        NO_SPACE,
        /** The file system or the device failed. */
        IO_ERROR,
        /** Something else holds what is needed; the same call may succeed later. */
        BUSY,
        /** A deadline has passed, or a write would have had to wait. */
        TIMED_OUT,
        /** The call is not implemented. */
        NOT_IMPLEMENTED,
        /** The database is being closed. */
        SHUTDOWN,
        /** The engine gave up the call, or a read was not allowed to do what it needed. */
        ABORTED,
        /** None of the others. */
        OTHER
    }

    private final Kind kind;

    SateenException(Kind kind, String text) {
        super(text);
        this.kind = kind;
    }

    /** Makes an exception from a text of the C library. */
    static SateenException of(String text) {
        return new SateenException(kindOf(text), text);
    }

    /** Returns the kind of this error. */
    public Kind kind() {
        return kind;
    }

    private static Kind kindOf(String text) {
        String lower = text.toLowerCase(Locale.ROOT);
        // ENOSPC and EDQUOT of Linux, by number: paths may have any words, and the locale words the reason.
        if (lower.startsWith("io error") && (lower.endsWith("(os error 28)") || lower.endsWith("(os error 122)"))) {
            return Kind.NO_SPACE;
        }
        String[] starts = {"invalid argument", "notfound", "corruption", "io error", "resource busy",
            "operation timed out", "operation failed. try again", "not implemented",
            "shutdown in progress", "operation aborted", "aborted", "result incomplete"};
        Kind[] kinds = {Kind.INVALID_ARGUMENT, Kind.NOT_FOUND, Kind.CORRUPTION, Kind.IO_ERROR, Kind.BUSY,
            Kind.TIMED_OUT, Kind.BUSY, Kind.NOT_IMPLEMENTED, Kind.SHUTDOWN, Kind.ABORTED, Kind.ABORTED,
            Kind.ABORTED};
        for (int nth = 0; nth < starts.length; nth++) {
            if (lower.startsWith(starts[nth])) {
                return kinds[nth];
            }
        }
        return Kind.OTHER;
    }
}

package sateen;

/** An object was used after it, or the database that it belongs to, was closed. */
public final class ClosedException extends IllegalStateException {
    private static final long serialVersionUID = 1;

    ClosedException(String what) {
        super(what + " is closed");
    }
}

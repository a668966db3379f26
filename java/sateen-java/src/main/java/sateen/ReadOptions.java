package sateen;

/** What a read sees: a snapshot, bounds of an iterator, and whether it fills the block cache. */
public final class ReadOptions {
    /** The newest data, without bounds. */
    public static final ReadOptions DEFAULT = new ReadOptions(null, null, null, true);

    final Snapshot snapshot;
    final byte[] lower;
    final byte[] upper;
    final boolean fillCache;

    private ReadOptions(Snapshot snapshot, byte[] lower, byte[] upper, boolean fillCache) {
        this.snapshot = snapshot;
        this.lower = lower;
        this.upper = upper;
        this.fillCache = fillCache;
    }

    /** Reads at {@code snapshot}. */
    public ReadOptions at(Snapshot snapshot) {
        return new ReadOptions(snapshot, lower, upper, fillCache);
    }

    /** An iterator shows keys from {@code lower} on, and none from {@code upper} on; null is no bound. */
    public ReadOptions between(byte[] lower, byte[] upper) {
        return new ReadOptions(snapshot, lower == null ? null : lower.clone(),
            upper == null ? null : upper.clone(), fillCache);
    }

    /** The blocks that the read needs are not put into the cache: for long scans. */
    public ReadOptions withoutFillingCache() {
        return new ReadOptions(snapshot, lower, upper, false);
    }
}

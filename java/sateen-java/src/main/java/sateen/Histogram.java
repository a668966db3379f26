package sateen;

import java.util.Map;

/**
 * A histogram of the statistics of a database, since it was opened: {@link Database#histogram}. Times
 * are in microseconds.
 *
 * @param count    the number of entries
 * @param sum      their sum
 * @param minimum  the lower bound of the smallest bucket that has entries, 0 without entries
 * @param maximum  the greatest entry
 * @param average  the average entry
 * @param median   the entry that half of them do not exceed
 * @param p95      the entry that 95 % of them do not exceed
 * @param p99      the entry that 99 % of them do not exceed
 */
public record Histogram(long count, long sum, double minimum, double maximum, double average,
        double median, double p95, double p99) {
    /** The numbers of the C interface. */
    private static final Map<String, Integer> NUMBERS = Map.of(
        "rocksdb.db.get.micros", 0,
        "rocksdb.db.write.micros", 1,
        "rocksdb.compaction.times.micros", 2,
        "rocksdb.db.multiget.micros", 10,
        "rocksdb.db.seek.micros", 15,
        "rocksdb.db.write.stall", 16,
        "rocksdb.db.flush.micros", 50);

    /** Reads a histogram from the statistics of options. */
    static Histogram read(long options, String name) {
        Integer number = NUMBERS.get(name);
        if (number == null) {
            throw new IllegalArgumentException("there is no histogram " + name + "; there are "
                + String.join(", ", NUMBERS.keySet().stream().sorted().toList()));
        }
        double[] all = Native.CALLS.histogram(options, number);
        return new Histogram((long) all[0], (long) all[1], all[2], all[3], all[4], all[5], all[6],
            all[7]);
    }
}

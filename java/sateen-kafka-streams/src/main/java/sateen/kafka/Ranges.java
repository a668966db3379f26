package sateen.kafka;

import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Bounds of keys. */
final class Ranges {
    private static final Logger LOG = LoggerFactory.getLogger(Ranges.class);

    private Ranges() {}

    /** Says why a range is empty, in the words that Kafka's stores use and its tests look for. */
    static void warnInverted() {
        LOG.warn("Returning empty iterator for fetch with invalid key range: from > to."
            + " This may be due to range arguments set in the wrong order,"
            + " or serdes that don't preserve ordering when lexicographically comparing the serialized bytes."
            + " Note that the built-in numerical serdes do not follow this for negative numbers");
    }

    /** Returns the first key behind all keys that begin with {@code prefix}; null if there is none. */
    static Bytes behindPrefix(byte[] prefix) {
        for (int last = prefix.length - 1; last >= 0; last--) {
            if (prefix[last] != (byte) 0xff) {
                byte[] behind = Arrays.copyOf(prefix, last + 1);
                behind[last]++;
                return Bytes.wrap(behind);
            }
        }
        return null;
    }

    /**
     * Returns the greatest key that {@code key} or a smaller key of Kafka's can have in a store whose keys
     * end with {@code suffix} or less. A key that is the beginning of another one can be behind it,
     * because what follows it then is its suffix.
     */
    static Bytes greatest(Bytes key, byte[] suffix) {
        byte[] bytes = key.get();
        int beginning = bytes.length;
        // A shorter key is greater if its suffix is greater than the rest of the longer key.
        for (int length = bytes.length - 1; length >= 0; length--) {
            int order = compare(suffix, bytes, length, beginning, suffix);
            if (order > 0) {
                beginning = length;
            }
        }
        byte[] greatest = Arrays.copyOf(bytes, beginning + suffix.length);
        System.arraycopy(suffix, 0, greatest, beginning, suffix.length);
        return Bytes.wrap(greatest);
    }

    /** Compares {@code suffix} with the part of {@code key} between two places and {@code end} behind it. */
    private static int compare(byte[] suffix, byte[] key, int from, int to, byte[] end) {
        for (int at = 0; at < suffix.length; at++) {
            int place = from + at;
            int other = (place < to ? key[place] : end[place - to]) & 0xff;
            int own = suffix[at] & 0xff;
            if (own != other) {
                return own - other;
            }
        }
        return -1;
    }
}

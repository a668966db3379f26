package sateen.kafka;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Function;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * The accepted entries of several segments, one after the other. A segment is read from when it is
 * reached. If the store is closed meanwhile, there are no more entries.
 */
final class SegmentIterator implements KeyValueIterator<Bytes, byte[]> {
    private final Iterator<Family> segments;
    private final Function<Family, StoreIterator> begin;
    private final Segments.Filter filter;
    private StoreIterator current;
    private boolean closed;

    SegmentIterator(Iterator<Family> segments, Function<Family, StoreIterator> begin,
            Segments.Filter filter) {
        this.segments = segments;
        this.begin = begin;
        this.filter = filter;
    }

    @Override
    public boolean hasNext() {
        while (!closed) {
            if (current == null) {
                if (!segments.hasNext()) {
                    return false;
                }
                current = begin.apply(segments.next());
            }
            if (current.isClosed()) {
                closed = true;
                return false;
            }
            while (current.hasNext()) {
                if (filter.accepts(current.peekNextKey().get())) {
                    return true;
                }
                current.next();
            }
            current.close();
            current = null;
        }
        return false;
    }

    @Override
    public KeyValue<Bytes, byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return current.next();
    }

    @Override
    public Bytes peekNextKey() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return current.peekNextKey();
    }

    @Override
    public void close() {
        closed = true;
        if (current != null) {
            current.close();
            current = null;
        }
    }
}

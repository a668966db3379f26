package sateen.kafka;

import java.util.Collection;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig.InternalConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import sateen.WriteBatch;

/** What all stores have in common: opening, committing, restoring, closing. */
abstract class SateenStore implements StateStore {
    private final String name;
    private volatile StateDatabase database;
    private StateStoreContext context;
    /** The metrics of the open database. */
    private StoreMetrics metrics;
    private boolean consistency;

    SateenStore(String name) {
        this.name = name;
    }

    /** Returns the {@link Shape} of the store. */
    abstract String shape();

    /** Returns the scope of the metrics, which is that of the supplier of the store. */
    String metricsScope() {
        return SateenStores.SCOPE;
    }

    /** Called with the open database, before anything is restored. */
    abstract void opened(StateDatabase opened, StateStoreContext storeContext);

    /** Called with records of the changelog before they are restored. */
    void restoring(Collection<ConsumerRecord<byte[], byte[]>> records) {}

    /** Adds a record of the changelog to a batch. Returns false if the store does not keep it. */
    abstract boolean restore(WriteBatch batch, ConsumerRecord<byte[], byte[]> changed);

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final void init(StateStoreContext storeContext, StateStore root) {
        context = storeContext;
        consistency = InternalConfig.getBoolean(storeContext.appConfigs(),
            InternalConfig.IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED, false);
        open();
        boolean done = false;
        try {
            storeContext.register(root, (RecordBatchingStateRestoreCallback) this::restoreBatch);
            done = true;
        } finally {
            if (!done) {
                close();
            }
        }
    }

    private void open() {
        StateDatabase opened = StateDatabase.open(name, context, shape());
        boolean done = false;
        try {
            opened(opened, context);
            metrics = StoreMetrics.add(context, metricsScope(), opened);
            database = opened;
            done = true;
        } finally {
            if (!done) {
                opened.close();
            }
        }
    }

    /** Restores records of the changelog in one batch. A closed store is opened again, as Kafka's are. */
    final void restoreBatch(Collection<ConsumerRecord<byte[], byte[]>> records) {
        if (!isOpen()) {
            open();
        }
        StateDatabase open = database();
        if (!records.isEmpty()) {
            open.givenRecords();
        }
        restoring(records);
        long bytes = 0;
        try (WriteBatch batch = new WriteBatch()) {
            Position position = open.position();
            for (ConsumerRecord<byte[], byte[]> changed : records) {
                if (restore(batch, changed)) {
                    bytes += changed.key().length + (changed.value() == null ? 0 : changed.value().length);
                    synchronized (position) {
                        ChangelogRecordDeserializationHelper.applyChecksAndUpdatePosition(changed,
                            consistency, position);
                    }
                }
            }
            if (batch.count() > 0) {
                open.restore(batch, records.size(), bytes);
            }
        }
    }

    /** Returns the open database, or throws. */
    final StateDatabase database() {
        StateDatabase open = database;
        if (open == null || !open.isOpen()) {
            throw new InvalidStateStoreException("the store " + name + " is "
                + (open == null ? "not initialized" : "closed"));
        }
        return open;
    }

    final StateStoreContext context() {
        return context;
    }

    /** Advances the position to the record that is being processed. */
    final void advancePosition() {
        Queries.advance(database.position(), context);
    }

    @Override
    public final void commit(Map<TopicPartition, Long> offsets) {
        database().commit(offsets);
    }

    @Override
    public final Long committedOffset(TopicPartition partition) {
        return database().committedOffset(partition);
    }

    @Override
    @Deprecated
    public final boolean managesOffsets() {
        return true;
    }

    @Override
    public final boolean persistent() {
        return true;
    }

    @Override
    public final boolean isOpen() {
        StateDatabase open = database;
        return open != null && open.isOpen();
    }

    @Override
    public final Position getPosition() {
        StateDatabase open = database;
        return open == null ? Position.emptyPosition() : open.position();
    }

    @Override
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        return Queries.run(query, bound, config, this, getPosition(), context);
    }

    @Override
    public final void close() {
        StateDatabase open = database;
        if (open != null && open.isOpen()) {
            try {
                metrics.remove();
            } finally {
                open.close();
            }
        }
    }
}

package sateen.kafka;

import java.util.Map;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.RecordCollector;

/**
 * Tells a store under exactly-once that a transaction was committed. Kafka Streams 4.3 commits stores
 * only when a task ends; in between nothing calls them.
 *
 * <p>A thread of Kafka Streams counts a commit after it has succeeded: the transaction of all its tasks is
 * durable then, and has all that stores had been given before. So if the count has grown since the last
 * write, everything that was written until then is committed, and the last offset that the changelog's
 * producer was told is the end of it. A commit that fails is not counted, and its tasks are closed.
 */
final class CommitSignal {
    private final StateStoreContext context;
    /** Where the changelog is, or would be if the store had one. */
    private final TopicPartition changelog;
    private Thread thread;
    private Metric commits;
    private double seen;

    private CommitSignal(StateStoreContext context, TopicPartition changelog) {
        this.context = context;
        this.changelog = changelog;
    }

    /** Returns a signal for a store, or null if the context cannot tell. */
    static CommitSignal of(StateStoreContext context, String store) {
        if (!(context instanceof RecordCollector.Supplier)) {
            return null;
        }
        String topic = ProcessorContextUtils.changelogFor(context, store, false);
        return new CommitSignal(context, new TopicPartition(topic, context.taskId().partition()));
    }

    /**
     * Called before each write of the store. Returns null unless a transaction was committed since the
     * last call. Otherwise everything that was written before is committed; the answer is the offset in
     * the changelog up to which that is, or empty if the producer wrote no changelog for this store.
     */
    Map<TopicPartition, Long> committed() {
        Thread current = Thread.currentThread();
        if (current != thread) {
            thread = current;
            commits = context.metrics().metrics().get(new MetricName("commit-total",
                "stream-thread-metrics", "", Map.of("thread-id", current.getName())));
            seen = count();
            return null;
        }
        double now = count();
        if (now <= seen) {
            return null;
        }
        seen = now;
        RecordCollector collector = ((RecordCollector.Supplier) context).recordCollector();
        Long offset = collector == null ? null : collector.offsets().get(changelog);
        return offset == null ? Map.of() : Map.of(changelog, offset);
    }

    private double count() {
        Object value = commits == null ? null : commits.metricValue();
        return value instanceof Number ? ((Number) value).doubleValue() : 0;
    }
}

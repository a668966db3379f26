package sateen.kafka;

import java.util.function.Supplier;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;

/** Kafka's own handling of interactive queries, in one place because it is not a public interface. */
final class Queries {
    private Queries() {}

    static <R> QueryResult<R> run(Query<R> query, PositionBound bound, QueryConfig config, StateStore store,
            Position position, StateStoreContext context) {
        return StoreQueryUtils.handleBasicQueries(query, bound, config, store, position, context);
    }

    /** Runs a query that Kafka handles for its own stores alone. */
    static <R> QueryResult<R> run(StateStore store, PositionBound bound, Position position,
            StateStoreContext context, Supplier<R> answer) {
        synchronized (position) {
            int partition = context.taskId().partition();
            QueryResult<R> result;
            if (!StoreQueryUtils.isPermitted(position, bound, partition)) {
                result = QueryResult.notUpToBound(position, bound, partition);
            } else {
                try {
                    result = QueryResult.forResult(answer.get());
                } catch (RuntimeException failed) {
                    result = QueryResult.forFailure(FailureReason.STORE_EXCEPTION,
                        "a query of the store " + store.name() + " failed: " + failed);
                }
            }
            result.setPosition(position.copy());
            return result;
        }
    }

    /** Advances a position to the record that is being processed. */
    static void advance(Position position, StateStoreContext context) {
        synchronized (position) {
            StoreQueryUtils.updatePosition(position, context);
        }
    }
}

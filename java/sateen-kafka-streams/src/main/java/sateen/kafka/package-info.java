/**
 * State stores for Kafka Streams that keep their data in Sateen.
 *
 * <p>{@link sateen.kafka.SateenDslStoreSuppliers} makes every store of the DSL such a store:
 * {@code dsl.store.suppliers.class=sateen.kafka.SateenDslStoreSuppliers}. {@link sateen.kafka.SateenStores}
 * has the suppliers for the Processor API. {@link sateen.kafka.SateenConfig} lists the keys of the
 * configuration.
 *
 * <p>{@code StateDatabase} is the database of one store of one partition: it buffers what was not
 * committed, and writes it in one batch together with the offset in the changelog. The stores above it
 * translate Kafka's interfaces into keys.
 */
package sateen.kafka;

/**
 * Sateen for Java: an embedded, ordered, persistent key-value store with a flat latency tail.
 * {@link sateen.Database} is where to begin.
 *
 * <p>Everything that holds native memory is {@link java.lang.AutoCloseable}. Nothing is freed by the
 * garbage collector. A use after the close is a {@link sateen.ClosedException}, never a crash. An error
 * of the engine is a {@link sateen.SateenException}, whose text names what failed.
 */
package sateen;

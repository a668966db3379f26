//! A bridge from a database of Sateen to OpenTelemetry: its metrics as observable instruments, and
//! a span for each of its slow operations.
//!
//! 1. [`Bridge::begin`] registers an instrument for each metric (`metrics`) and starts a thread.
//! 2. The reader of the program's meter provider asks the instruments when it collects.
//! 3. Each [`Settings::period`] the thread takes the flight recorder's news and ends a span for
//! each
//!    operation that was slow (`spans`).
//! 4. Dropping the [`Bridge`] stops both. It holds the database open, so drop it first.
//!
//! What must stay true: nothing here runs on the path of an operation, and a database without a
//! bridge pays nothing. The crate needs the interface of OpenTelemetry alone: the program chooses
//! the SDK, the exporter and the runtime.
//!
//! ```
//! # let directory = tempfile::tempdir().unwrap();
//! use sateen_otel::{Bridge, Settings};
//!
//! let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
//! let meter = opentelemetry::global::meter("library");
//! let tracer = opentelemetry::global::tracer("library");
//! let bridge = Bridge::begin(&db, &meter, tracer, Settings::default());
//! db.put("walden", "Thoreau, 1854")?;
//! drop(bridge);
//! # Ok::<(), sateen::Error>(())
//! ```

mod metrics;
mod spans;

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use opentelemetry::trace::Tracer;
use sateen::Db;

use metrics::Source;
use spans::Spans;

/// How a bridge works.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// How often the flight recorder is asked for slow operations. It keeps those of half a minute
    /// on a busy database. Ten seconds by default.
    pub period: Duration,
    /// Operations that took less get no span. Ten milliseconds by default. Of those that took as
    /// long, the recorder keeps the eight slowest of each kind and second.
    pub slow: Duration,
    /// Attributes of every metric and span, such as the name of the database. None by default.
    pub attributes: Vec<KeyValue>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            period: Duration::from_secs(10),
            slow: Duration::from_millis(10),
            attributes: Vec::new(),
        }
    }
}

impl Settings {
    /// Sets how often slow operations are looked for.
    #[must_use]
    pub fn with_period(self, period: Duration) -> Settings {
        Settings { period, ..self }
    }

    /// Sets how long a slow operation takes at least.
    #[must_use]
    pub fn with_slow(self, slow: Duration) -> Settings {
        Settings { slow, ..self }
    }

    /// Adds an attribute to every metric and span.
    #[must_use]
    pub fn with_attribute(mut self, attribute: KeyValue) -> Settings {
        self.attributes.push(attribute);
        self
    }
}

/// A database that is bridged, and held open, until this is dropped.
#[derive(Debug)]
pub struct Bridge {
    source: Arc<Source>,
    /// Closed to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Bridge {
    /// Registers the metrics of `db` with `meter`, and begins to give `tracer` its slow operations.
    ///
    /// OpenTelemetry has no way to unregister an instrument. After a bridge was dropped, its
    /// instruments report nothing. If the operating system gives no thread, there are metrics and
    /// no spans.
    #[must_use]
    pub fn begin<T>(db: &Db, meter: &Meter, tracer: T, settings: Settings) -> Bridge
    where
        T: Tracer + Send + 'static,
    {
        let source = Arc::new(Source::new(db.clone(), settings.attributes.clone()));
        metrics::register(&source, meter);
        let (stop, stopped) = mpsc::channel::<()>();
        let (db, period) = (db.clone(), settings.period.max(Duration::from_millis(10)));
        let mut spans = Spans::new(&db, &settings);
        let work = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(period) {
                spans.tell(&db, &tracer, false);
            }
            spans.tell(&db, &tracer, true);
        };
        let thread = std::thread::Builder::new().name("sateen-otel".to_owned()).spawn(work).ok();
        Bridge { source, stop: Some(stop), thread }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.source.close();
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A tracer that panicked must not take the database's thread with it.
            let _ended = thread.join();
        }
    }
}

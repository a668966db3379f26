//! Accepts connections, and answers one request on each.
//!
//! 1. `Server::start` starts the thread that accepts. It also calls `tick` once a second.
//! 2. Each connection gets a thread, up to [`CONNECTIONS_MAX`]. One more is told so and closed.
//! 3. `serve` reads the request within [`REQUEST_MAX`], asks the handler and writes the answer
//!    within [`ANSWER_MAX`].
//! 4. Dropping the server ends the accepting thread and shuts all connections down. It does not
//!    wait for a request that is being carried out.
//!
//! What must stay true: a client can hold up its own thread alone, and that not for ever.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::http::{Answer, BODY_MAX, HEAD_MAX, Refusal, Request, parse};
use crate::socket::is_same_user;

/// Connections that are served at the same time, at most.
pub(crate) const CONNECTIONS_MAX: usize = 16;
/// Time within which a request must have arrived.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// Time within which an answer must have been taken.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Time for which the rest of a refused request is read.
const LINGER: Duration = Duration::from_millis(50);
/// Interval of ticks.
const TICK: Duration = Duration::from_secs(1);
/// Pause after a failure to accept, such as too many open files.
const FAILED_PAUSE: Duration = Duration::from_millis(100);

/// Answers requests.
pub(crate) trait Handler: Send + Sync + 'static {
    fn answer(&self, request: &Request) -> Answer;

    /// Called about once a second, on the thread that accepts.
    fn tick(&self) {}
}

/// Where connections come from.
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Unix(listener) => Ok(Stream::Unix(listener.accept()?.0)),
            Listener::Tcp(listener) => Ok(Stream::Tcp(listener.accept()?.0)),
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Listener::Unix(listener) => listener.set_nonblocking(true),
            Listener::Tcp(listener) => listener.set_nonblocking(true),
        }
    }
}

/// A connection.
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
        })
    }

    fn set_timeout(&self, left: Duration) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(left))?;
                stream.set_write_timeout(Some(left))
            }
            Stream::Tcp(stream) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(left))?;
                stream.set_write_timeout(Some(left))
            }
        }
    }

    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(to),
            Stream::Tcp(stream) => stream.read(to),
        }
    }

    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(from),
            Stream::Tcp(stream) => stream.write(from),
        }
    }

    /// Ends the answer. What the client still sends is read for a moment: a connection that is
    /// closed before that is reset, and the answer is lost with it.
    fn finish(&mut self) {
        let _closed = match self {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
        };
        let mut some = [0; 4096];
        let until = Instant::now() + LINGER;
        while self.set_timeout(LINGER).is_ok()
            && self.read(&mut some).is_ok_and(|read| read > 0)
            && Instant::now() < until
        {}
    }

    fn shutdown(&self) {
        // It may be closed already.
        let _closed = match self {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// Returns why the other side may not ask, if it may not.
    fn refusal(&self) -> Option<Refusal> {
        match self {
            Stream::Unix(stream) if !is_same_user(stream) => {
                Some(Refusal::new(403, "only the user of the database's process may connect"))
            }
            _ => None,
        }
    }
}

/// The connections that are being served.
#[derive(Default)]
struct Connections {
    open: Mutex<(u64, BTreeMap<u64, Stream>)>,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Stream>)> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a connection, and returns its number; `None` if there are too many.
    fn add(&self, stream: &Stream) -> Option<u64> {
        let kept = stream.try_clone().ok()?;
        let mut open = self.lock();
        if open.1.len() >= CONNECTIONS_MAX {
            return None;
        }
        open.0 += 1;
        let number = open.0;
        open.1.insert(number, kept);
        Some(number)
    }
}

/// A running server. Dropping it ends it.
pub(crate) struct Server {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    connections: Arc<Connections>,
}

impl Server {
    /// Starts to serve what connects to `listener`.
    pub(crate) fn start(listener: Listener, handler: Arc<dyn Handler>) -> io::Result<Server> {
        listener.set_nonblocking()?;
        let (stop, stopped) = UnixStream::pair()?;
        let connections = Arc::<Connections>::default();
        let known = connections.clone();
        let accept = move || accept(&listener, &stopped, &handler, &known);
        let thread = std::thread::Builder::new().name("sateen-inspect".to_owned()).spawn(accept)?;
        Ok(Server { stop: Some(stop), thread: Some(thread), connections })
    }

    /// Waits until the server ends by itself, which it does not.
    pub(crate) fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop = None;
        self.wait();
        self.connections.lock().1.values().for_each(Stream::shutdown);
    }
}

/// Accepts connections until the other end of `stopped` is closed.
fn accept(
    listener: &Listener,
    stopped: &UnixStream,
    handler: &Arc<dyn Handler>,
    connections: &Arc<Connections>,
) {
    let mut next_tick = Instant::now();
    loop {
        let left = next_tick.saturating_duration_since(Instant::now());
        if left.is_zero() {
            next_tick = Instant::now() + TICK;
            // A tick that panics is lost, and the next one is not.
            let _panicked = catch_unwind(AssertUnwindSafe(|| handler.tick()));
            continue;
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(1),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut ready = [
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN),
        ];
        if poll(&mut ready, Some(&timeout)).is_err() {
            continue;
        }
        let [listening, stopping] = &ready;
        if !stopping.revents().is_empty() {
            return;
        }
        if listening.revents().is_empty() {
            continue;
        }
        match listener.accept() {
            Ok(stream) => begin(stream, handler, connections),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => std::thread::sleep(FAILED_PAUSE),
        }
    }
}

/// Serves a connection on a thread of its own.
fn begin(mut stream: Stream, handler: &Arc<dyn Handler>, connections: &Arc<Connections>) {
    let refused = |stream: &mut Stream, refusal: Refusal| {
        // The accepting thread waits for nobody: the socket's buffer takes this, or it is lost.
        let _lost = stream.set_timeout(Duration::from_millis(1));
        let mut request = [0; 4096];
        let _unread = stream.read(&mut request);
        let answer = Answer::refused(&refusal);
        let _lost = stream.write(&[answer.head().as_bytes(), &answer.body].concat());
    };
    if let Some(refusal) = stream.refusal() {
        return refused(&mut stream, refusal);
    }
    let Some(number) = connections.add(&stream) else {
        let text = format!("{CONNECTIONS_MAX} connections are being served: try again");
        return refused(&mut stream, Refusal::new(503, text));
    };
    let (handler, known) = (handler.clone(), connections.clone());
    let run = move || {
        // A client that goes away is no matter of ours.
        if serve(&mut stream, handler.as_ref()).is_ok() {
            stream.finish();
        }
        drop(stream);
        known.lock().1.remove(&number);
    };
    if std::thread::Builder::new().name("sateen-client".to_owned()).spawn(run).is_err() {
        connections.lock().1.remove(&number);
    }
}

fn serve(stream: &mut Stream, handler: &dyn Handler) -> io::Result<()> {
    let answer = match read_request(stream)? {
        Ok(request) => catch_unwind(AssertUnwindSafe(|| handler.answer(&request)))
            .unwrap_or_else(|_| Answer::refused(&Refusal::new(500, "the request panicked"))),
        Err(refusal) => Answer::refused(&refusal),
    };
    let until = Instant::now() + ANSWER_MAX;
    for mut part in [answer.head().as_bytes(), &answer.body] {
        while !part.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            stream.set_timeout(left.max(Duration::from_millis(1)))?;
            let written = stream.write(part)?;
            part = part.get(written..).unwrap_or_default();
            if written == 0 || left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
    Ok(())
}

/// Reads a request. An error of the connection ends it without an answer.
fn read_request(stream: &mut Stream) -> io::Result<Result<Request, Refusal>> {
    let until = Instant::now() + REQUEST_MAX;
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        match parse(&bytes) {
            Ok(Some(request)) => return Ok(Ok(request)),
            Ok(None) if bytes.len() > HEAD_MAX + BODY_MAX + part.len() => {
                return Ok(Err(Refusal::new(413, "the request is too long")));
            }
            Ok(None) => {}
            Err(refusal) => return Ok(Err(refusal)),
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Err(Refusal::new(408, "the request did not arrive in time")));
        }
        stream.set_timeout(left)?;
        match stream.read(&mut part) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes.extend_from_slice(part.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
}

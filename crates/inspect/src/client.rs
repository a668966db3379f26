//! Asks a running process about its database.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::protocol::{ExplanationReport, SOCKET, Status};
use crate::socket;

/// Time within which a process answers a question.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Time within which it does work.
const WORK_MAX: Duration = Duration::from_secs(24 * 3600);
/// Bytes of an answer, at most: a timeline has a few tens of megabytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Why there is no answer.
#[derive(Debug)]
pub enum ClientError {
    /// No process serves the database: it is not open, or its option `inspect` is off.
    NotServed(PathBuf),
    /// The socket belongs to another user.
    OtherUser(PathBuf),
    /// The connection failed.
    Io(PathBuf, io::Error),
    /// The process refused: a status of HTTP, and its reason.
    Refused(u16, String),
    /// The process answered something that is not understood.
    Strange(String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::NotServed(path) => write!(
                f,
                "{}: no process serves this database: it is not open for writing, or its option \
                 inspect is off (SATEEN_INSPECT=1 turns it on for a whole process)",
                sateen::shown_path(path)
            ),
            ClientError::OtherUser(path) => write!(
                f,
                "{}: user {} may not open this socket{}: ask as the user of the database's process",
                sateen::shown_path(path),
                rustix::process::geteuid().as_raw(),
                socket::owner(path).map_or_else(String::new, |uid| format!(" of user {uid}")),
            ),
            ClientError::Io(path, error) => write!(f, "{}: {error}", sateen::shown_path(path)),
            ClientError::Refused(_, text) => f.write_str(text),
            ClientError::Strange(text) => write!(f, "the process answered {text}"),
        }
    }
}

impl std::error::Error for ClientError {}

/// Speaks to the socket of a database. Each call makes a connection of its own.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
}

impl Client {
    /// Speaks to the process that has the database in `directory` open.
    #[must_use]
    pub fn of_database(directory: impl AsRef<Path>) -> Client {
        Client { socket: directory.as_ref().join(SOCKET) }
    }

    /// Speaks to a socket.
    #[must_use]
    pub fn of_socket(path: impl Into<PathBuf>) -> Client {
        Client { socket: path.into() }
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the state of the database.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn status(&self) -> Result<Status, ClientError> {
        self.value("/v1/status")
    }

    /// Returns why the slowest seconds of the last `since` were slow.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn explain(&self, since: Duration) -> Result<ExplanationReport, ClientError> {
        self.value(&format!("/v1/explain?since={}", since.as_secs()))
    }

    /// Returns the answer to `GET path`.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn get(&self, path: &str) -> Result<Vec<u8>, ClientError> {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: sateen\r\n\r\n"), "", ANSWER_MAX)
    }

    /// Asks for work or a change, with arguments in JSON, and waits until it is done.
    ///
    /// # Errors
    /// Why it was not done, or is not known to be done.
    pub fn post(
        &self,
        path: &str,
        arguments: &serde_json::Value,
    ) -> Result<serde_json::Value, ClientError> {
        let body = arguments.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: sateen\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        understood(&self.ask(&head, &body, WORK_MAX)?)
    }

    fn value<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        understood(&self.get(path)?)
    }

    fn ask(&self, head: &str, body: &str, wait: Duration) -> Result<Vec<u8>, ClientError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ClientError::NotServed(self.socket.parent().unwrap_or(&self.socket).to_owned())
            }
            io::ErrorKind::PermissionDenied => ClientError::OtherUser(self.socket.clone()),
            _ => ClientError::Io(self.socket.clone(), error),
        };
        let mut stream = socket::connect_to(&self.socket).map_err(failed)?;
        let mut answer = Vec::new();
        stream
            .set_read_timeout(Some(wait))
            .and_then(|()| stream.set_write_timeout(Some(ANSWER_MAX)))
            .and_then(|()| {
                let sent = stream.write_all(&[head.as_bytes(), body.as_bytes()].concat());
                // It may have answered and closed before it had read all.
                sent.or_else(|error| match error.kind() {
                    io::ErrorKind::BrokenPipe => Ok(()),
                    _ => Err(error),
                })
            })
            .and_then(|()| (&stream).take(ANSWER_BYTES_MAX).read_to_end(&mut answer))
            .map(drop)
            // A process that refuses a connection may close it before it has read the request.
            .or_else(|error| if answer.is_empty() { Err(error) } else { Ok(()) })
            .and_then(|()| if answer.is_empty() { Err(ended()) } else { Ok(()) })
            .map_err(|error| ClientError::Io(self.socket.clone(), error))?;
        match opened(&answer) {
            Err(ClientError::Refused(403, _)) => Err(ClientError::OtherUser(self.socket.clone())),
            opened => opened,
        }
    }
}

/// Returns the error of a process that closed the connection without an answer.
fn ended() -> io::Error {
    let text = "the process ended, or closed the database, before it answered";
    io::Error::new(io::ErrorKind::UnexpectedEof, text)
}

fn understood<T: DeserializeOwned>(body: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|error| ClientError::Strange(format!("no JSON: {error}")))
}

/// Returns the body of an answer.
pub(crate) fn opened(answer: &[u8]) -> Result<Vec<u8>, ClientError> {
    let strange = |what: &str| ClientError::Strange(what.to_owned());
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = end
        .and_then(|end| answer.split_at_checked(end + 4))
        .ok_or_else(|| strange("no head of HTTP"))?;
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse::<u16>().ok());
    let status = status.ok_or_else(|| strange("no status of HTTP"))?;
    let length = lines.find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    if length != Some(body.len()) {
        return Err(strange("less than it announced"));
    }
    if status == 200 {
        return Ok(body.to_vec());
    }
    let text = serde_json::from_slice::<serde_json::Value>(body).ok();
    let text = text.and_then(|value| Some(value.get("error")?.as_str()?.to_owned()));
    Err(ClientError::Refused(status, text.unwrap_or_else(|| format!("status {status}"))))
}

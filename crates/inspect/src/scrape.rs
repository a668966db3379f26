//! Serves metrics and the live page on a TCP address: from within the process of a database
//! ([`prometheus`]), or from another one, which asks its socket ([`relay`]).
//!
//! What must stay true: over TCP nothing can be changed. Without a name of this machine in `Host`,
//! or with an `Origin`, a request is refused, so that a page of the web cannot ask in a browser's
//! name.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;

use sateen::Db;

use crate::client::{Client, ClientError};
use crate::door::databases;
use crate::http::{Answer, HTML, JSON, METRICS, Method, Refusal, Request, TEXT};
use crate::route::{PAGE, Routes, explain_query};
use crate::server::{Handler, Listener, Server};
use crate::watch::Watch;

/// An endpoint for a scraper. Dropping it ends it.
pub struct Scrape {
    address: SocketAddr,
    server: Server,
}

impl Scrape {
    /// Returns the address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves for ever.
    pub fn wait(mut self) {
        self.server.wait();
    }
}

impl std::fmt::Debug for Scrape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scrape").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Serves the metrics of a database of this process on `address`, for Prometheus: `/metrics`. The
/// database stays open until the endpoint is dropped. Give a loopback address, such as
/// `127.0.0.1:9187`, unless the network is yours: anybody who reaches it may look.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// let scrape = sateen_inspect::prometheus(&db, "127.0.0.1:0").unwrap();
/// println!("http://{}/metrics", scrape.address());
/// # Ok::<(), sateen::Error>(())
/// ```
///
/// # Errors
/// What the operating system says against the address.
pub fn prometheus(db: &Db, address: impl ToSocketAddrs) -> io::Result<Scrape> {
    let routes = Routes::new(Watch::new(db.clone()), databases, false);
    begin(address, Box::new(routes))
}

/// Serves the metrics of a database of another process on `address`, by asking its socket.
///
/// # Errors
/// What the operating system says against the address.
pub fn relay(client: Client, address: impl ToSocketAddrs) -> io::Result<Scrape> {
    begin(address, Box::new(Relay(client)))
}

fn begin(address: impl ToSocketAddrs, handler: Box<dyn Handler>) -> io::Result<Scrape> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let guarded = Guarded { handler, is_loopback: address.ip().is_loopback() };
    let server = Server::start(Listener::Tcp(listener), Arc::new(guarded))?;
    Ok(Scrape { address, server })
}

/// Refuses what a browser asks in the name of a page of the web.
struct Guarded {
    handler: Box<dyn Handler>,
    is_loopback: bool,
}

impl Handler for Guarded {
    fn answer(&self, request: &Request) -> Answer {
        if request.has_origin {
            return Answer::refused(&Refusal::new(403, "requests of other pages are refused"));
        }
        if self.is_loopback && !request.host.as_deref().is_none_or(is_this_machine) {
            return Answer::refused(&Refusal::new(403, "Host: not a name of this machine"));
        }
        self.handler.answer(request)
    }

    fn tick(&self) {
        self.handler.tick();
    }
}

/// Returns true if `host`, with or without a port, is the loopback.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Asks the socket of a database.
struct Relay(Client);

impl Handler for Relay {
    fn answer(&self, request: &Request) -> Answer {
        if request.method != Method::Get {
            return Answer::refused(&Refusal::new(405, "requests may only look here"));
        }
        let (path, kind) = match request.path.as_str() {
            "/" => return Answer::ok(HTML, PAGE),
            "/metrics" | "/v1/metrics" => ("/v1/metrics".to_owned(), METRICS),
            "/v1/status" => ("/v1/status".to_owned(), JSON),
            "/v1/explain" => match explain_query(request) {
                Ok((since, is_text)) => {
                    let (format, kind) = if is_text { ("text", TEXT) } else { ("json", JSON) };
                    (format!("/v1/explain?since={}&format={format}", since.as_secs()), kind)
                }
                Err(refusal) => return Answer::refused(&refusal),
            },
            path => {
                let text = format!("{path}: no such path");
                return Answer::refused(&Refusal::new(404, text));
            }
        };
        match self.0.get(&path) {
            Ok(body) => Answer::ok(kind, body),
            Err(ClientError::Refused(status, text)) => Answer::refused(&Refusal { status, text }),
            Err(error) => Answer::refused(&Refusal::new(503, error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for host in ["localhost", "localhost:9187", "127.0.0.1:1", "[::1]:9187", "127.8.9.1"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["evil.example", "evil.example:9187", "localhost.evil.example", "10.0.0.1", ""]
        {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}

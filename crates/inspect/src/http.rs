//! The little of HTTP/1.1 that the protocol needs: one request and one answer for each connection.
//!
//! 1. [`parse`] looks at the bytes that have arrived, and returns a request, `None` if more must
//!    come, or why they are refused.
//! 2. [`Answer::head`] is what stands before the body of an answer.
//!
//! What must stay true: no input makes it panic or remember more than [`HEAD_MAX`] and [`BODY_MAX`]
//! bytes. What it does not understand is refused, never guessed at.

use std::collections::BTreeMap;

/// Bytes of the request line and of all header lines together, at most.
pub(crate) const HEAD_MAX: usize = 8 << 10;
/// Bytes of a request's body, at most.
pub(crate) const BODY_MAX: usize = 64 << 10;

/// A method that requests may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Looks.
    Get,
    /// Changes something, or asks for work.
    Post,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The values in the query, by name.
    pub query: BTreeMap<String, String>,
    /// The header `Host`, in lower case.
    pub host: Option<String>,
    /// True if the header `Origin` is there, as a page of a browser sends it.
    pub has_origin: bool,
    /// The body.
    pub body: Vec<u8>,
}

/// Why a request is refused: a status of HTTP, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status of HTTP.
    pub status: u16,
    /// What is wrong.
    pub text: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, text: impl Into<String>) -> Refusal {
        Refusal { status, text: text.into() }
    }
}

/// Reads a request from the bytes that have arrived so far. Returns `None` if they are only the
/// beginning of one.
///
/// # Errors
/// Why they are not the beginning of a request.
pub fn parse(bytes: &[u8]) -> Result<Option<Request>, Refusal> {
    let Some(end) = bytes.windows(4).take(HEAD_MAX).position(|four| four == b"\r\n\r\n") else {
        if bytes.len() > HEAD_MAX {
            let text = format!("the head is longer than {HEAD_MAX} bytes");
            return Err(Refusal::new(431, text));
        }
        return Ok(None);
    };
    let (head, rest) = bytes.split_at_checked(end).unwrap_or_default();
    let rest = rest.get(4..).unwrap_or_default();
    let head = std::str::from_utf8(head)
        .map_err(|_| Refusal::new(400, "the head of the request is not UTF-8"))?;
    let mut lines = head.split("\r\n");
    let mut request = request_line(lines.next().unwrap_or_default())?;
    let mut length = None;
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            return Err(Refusal::new(400, "a header line has no colon"));
        };
        let value = value.trim_matches([' ', '\t']);
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let number = value.parse::<usize>().ok().filter(|_| digits);
                let number =
                    number.ok_or_else(|| Refusal::new(400, "Content-Length: no number"))?;
                if length.replace(number).is_some_and(|before| before != number) {
                    return Err(Refusal::new(400, "Content-Length: given twice"));
                }
            }
            "transfer-encoding" => {
                return Err(Refusal::new(501, "Transfer-Encoding: give Content-Length instead"));
            }
            "host" => request.host = Some(value.to_ascii_lowercase()),
            "origin" => request.has_origin = true,
            _ => {}
        }
    }
    let length = length.unwrap_or(0);
    if length > BODY_MAX {
        return Err(Refusal::new(413, format!("the body is longer than {BODY_MAX} bytes")));
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    request.body = body.to_vec();
    Ok(Some(request))
}

fn request_line(line: &str) -> Result<Request, Refusal> {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::new(400, "not a request of HTTP"));
    };
    if version != "HTTP/1.1" && version != "HTTP/1.0" {
        return Err(Refusal::new(505, "HTTP/1.1 is spoken here"));
    }
    let method = match method {
        "GET" => Method::Get,
        "POST" => Method::Post,
        _ => return Err(Refusal::new(405, "only GET and POST are known")),
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if !path.starts_with('/') {
        return Err(Refusal::new(400, "the target does not begin with /"));
    }
    let mut values = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        values.insert(unescaped(name)?, unescaped(value)?);
    }
    let path = unescaped(path)?;
    Ok(Request { method, path, query: values, host: None, has_origin: false, body: Vec::new() })
}

/// Replaces `%41` by `A`.
fn unescaped(text: &str) -> Result<String, Refusal> {
    let wrong = || Refusal::new(400, "a % without two hexadecimal digits of UTF-8 behind it");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let value = digit().zip(digit()).map(|(high, low)| high * 16 + low);
        bytes.push(value.and_then(|value| u8::try_from(value).ok()).ok_or_else(wrong)?);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
pub(crate) const HTML: &str = "text/html; charset=utf-8";
/// The text format of Prometheus.
pub(crate) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Answer {
    pub(crate) fn ok(content_type: &'static str, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status: 200, content_type, body: body.into() }
    }

    pub(crate) fn json(value: &serde_json::Value) -> Answer {
        Answer::ok(JSON, format!("{value}\n"))
    }

    pub(crate) fn refused(refusal: &Refusal) -> Answer {
        let body = format!("{}\n", serde_json::json!({ "error": refusal.text }));
        Answer { status: refusal.status, content_type: JSON, body: body.into_bytes() }
    }

    /// Returns the lines before the body.
    pub(crate) fn head(&self) -> String {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            409 => "Conflict",
            410 => "Gone",
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            501 => "Not Implemented",
            503 => "Service Unavailable",
            505 => "HTTP Version Not Supported",
            _ => "Internal Server Error",
        };
        format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: \
             close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n",
            self.status,
            self.content_type,
            self.body.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(bytes: &[u8]) -> u16 {
        match parse(bytes) {
            Ok(Some(_)) => 200,
            Ok(None) => 0,
            Err(refusal) => refusal.status,
        }
    }

    #[test]
    fn a_request_is_read_once_it_is_whole() {
        let whole =
            b"POST /v1/options?why=a%20b&x HTTP/1.1\r\nHost: Me\r\ncontent-LENGTH:  3\r\n\r\nabc";
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), Ok(None), "{length} bytes");
        }
        let request = parse(whole).unwrap().unwrap();
        assert_eq!((request.method, request.path.as_str()), (Method::Post, "/v1/options"));
        assert_eq!(request.query["why"], "a b");
        assert_eq!((request.query["x"].as_str(), request.host.as_deref()), ("", Some("me")));
        assert_eq!((request.body.as_slice(), request.has_origin), (&b"abc"[..], false));
        assert_eq!(status(b"GET / HTTP/1.0\r\n\r\n"), 200);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (status_of, bytes) in [
            (400, &b"\r\n\r\n"[..]),
            (400, b"GET  / HTTP/1.1\r\n\r\n"),
            (400, b"GET v1 HTTP/1.1\r\n\r\n"),
            (400, b"GET /%4 HTTP/1.1\r\n\r\n"),
            (400, b"GET /%ff HTTP/1.1\r\n\r\n"),
            (400, b"GET /\xff HTTP/1.1\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\nno colon\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
            (405, b"PUT / HTTP/1.1\r\n\r\n"),
            (413, b"POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n"),
            (400, b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
            (501, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            (505, b"GET / HTTP/2\r\n\r\n"),
        ] {
            assert_eq!(status(bytes), status_of, "{}", bytes.escape_ascii());
        }
        assert_eq!(status(&vec![b'a'; HEAD_MAX + 1]), 431);
        assert_eq!(status(&vec![b'a'; HEAD_MAX]), 0);
    }
}

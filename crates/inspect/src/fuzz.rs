//! The entry of the fuzzer in `/fuzz`: bytes of a hostile client, and of a hostile process.

use crate::actions;
use crate::client;
use crate::http::parse;
use crate::protocol::Status;

/// Reads `bytes` as a request with its arguments, and as an answer. It must return without a panic.
/// A request that is cut short must be waited for, or refused as the whole is.
pub fn fuzz(bytes: &[u8]) {
    let whole = parse(bytes);
    if let Ok(Some(request)) = &whole {
        actions::fuzz(&request.body);
        // The same request again, whatever comes behind it.
        let longer = [bytes, b"more"].concat();
        assert_eq!(parse(&longer), whole);
    }
    if let Some(half) = bytes.get(..bytes.len() / 2)
        && let Ok(Some(request)) = parse(half)
    {
        assert_eq!(whole, Ok(Some(request)));
    }
    if let Ok(body) = client::opened(bytes) {
        let _told = serde_json::from_slice::<Status>(&body);
    }
}

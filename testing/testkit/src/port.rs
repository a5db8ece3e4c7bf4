//! Free ports on loopback.

/// A free port that was not returned in this process before. Another process may take it first, so retry with another
/// port if a server cannot bind it.
pub fn free() -> u16 {
    stanchion_local::port::free().unwrap_or_else(|error| panic!("{error}"))
}

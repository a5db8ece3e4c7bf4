//! Free ports on loopback.

/// A port that nobody listens on and that was not handed out in this process before. Whoever starts a server
/// tries again with another one: somebody may take it first.
pub fn free() -> u16 {
    stanchion_local::port::free().unwrap_or_else(|error| panic!("{error}"))
}

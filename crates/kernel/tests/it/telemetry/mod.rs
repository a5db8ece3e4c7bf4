//! What the operator says about itself, read the way a scraper, a probe or a log collector reads it.

mod client;
mod guard;
mod health;
mod logs;
mod metrics;
#[cfg(feature = "otlp")]
mod otlp;
mod redact;
pub(crate) mod scrape;

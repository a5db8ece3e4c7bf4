//! Observability, tested as a scraper, a health check or a log collector sees it.

mod client;
mod guard;
mod health;
mod logs;
mod metrics;
#[cfg(feature = "otlp")]
mod otlp;
mod redact;
pub(crate) mod scrape;

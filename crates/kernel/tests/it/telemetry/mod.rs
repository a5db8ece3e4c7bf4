//! What the operator says about itself, read the way a scraper, a probe or a log collector reads it.

mod client;
mod metrics;
mod scrape;

//! Exports the metrics at an interval, and once more at the end.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Uri};
use opentelemetry_http::HttpClient as _;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::resource::v1::Resource;
use percent_encoding::percent_decode_str;
use prost::Message as _;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::collector::Collector;
use super::exposition::families;
use super::message::{Span, message};
use super::{Address, OtlpError, Signal, resource};
use crate::telemetry::Metrics;

const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";
const DEFAULT_INTERVAL: Duration = Duration::from_mins(1);
const EXPORTER: &str = "OTEL_METRICS_EXPORTER";
/// The general variable first: the specific one overrides it.
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"];

/// Exports all metrics of one operator to a collector.
#[derive(Debug)]
pub struct Export {
    metrics: Metrics,
    collector: Collector,
    uri: Uri,
    resource: Resource,
    settings: Settings,
    start: u64,
}

/// Settings from the usual `OTEL_` variables.
#[derive(Debug)]
struct Settings {
    every: Duration,
    headers: HeaderMap,
}

impl Export {
    /// Prepares the export; `None` if `OTEL_METRICS_EXPORTER` is `none`. To be called on the Tokio runtime of the
    /// requests.
    pub fn new(
        metrics: Metrics,
        address: impl Into<Address>,
        version: &'static str,
    ) -> Result<Option<Self>, OtlpError> {
        let uri = address.into().url(Signal::Metrics)?;
        let Some(settings) = settings(|name| std::env::var(name).ok())? else {
            return Ok(None);
        };
        Ok(Some(Self {
            metrics,
            collector: Collector::new("metrics")?,
            uri,
            resource: described(version),
            settings,
            start: now(),
        }))
    }

    /// Exports until shutdown, and then a last time.
    pub async fn run(self, shutdown: CancellationToken) {
        let every = self.settings.every;
        let mut ticks = interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let goes_on = shutdown.run_until_cancelled(ticks.tick()).await.is_some();
            self.send().await;
            if !goes_on {
                return;
            }
        }
    }

    async fn send(&self) {
        let text = self.metrics.encode();
        let span = Span {
            start: self.start,
            now: now(),
        };
        let name_of = |shown: &str| self.metrics.otlp_name(shown);
        let message = message(&families(&text), name_of, self.resource.clone(), span);
        let mut request = Request::new(Bytes::from(message.encode_to_vec()));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.settings.headers.clone();
        // The collector logs a failure; the next message contains all values again.
        let _ = self.collector.send_bytes(request).await;
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn described(version: &'static str) -> Resource {
    let attributes = resource(version)
        .iter()
        .map(|(key, value)| KeyValue {
            key: key.to_string(),
            value: Some(value.clone().into()),
            ..KeyValue::default()
        })
        .collect();
    Resource {
        attributes,
        ..Resource::default()
    }
}

/// `None` if nothing is to be exported.
fn settings(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Settings>, OtlpError> {
    if variable(EXPORTER).as_deref() == Some("none") {
        return Ok(None);
    }
    let every = match variable(INTERVAL) {
        None => DEFAULT_INTERVAL,
        Some(value) => match value.parse() {
            Ok(milliseconds @ 1..) => Duration::from_millis(milliseconds),
            _ => {
                return Err(OtlpError::Variable {
                    name: INTERVAL,
                    value,
                    rule: "it is a number of milliseconds, such as 60000",
                });
            }
        },
    };
    let mut headers = HeaderMap::new();
    for name in HEADERS {
        for pair in variable(name).unwrap_or_default().split(',') {
            if !pair.trim().is_empty() {
                let (key, value) = header(pair).ok_or(OtlpError::Variable {
                    name,
                    value: "[hidden]".to_owned(),
                    rule: "it is a list like key=value,other=value",
                })?;
                headers.insert(key, value);
            }
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    Ok(Some(Settings { every, headers }))
}

/// A header, which often is a credential: it is marked as sensitive so that nothing prints it.
fn header(pair: &str) -> Option<(HeaderName, HeaderValue)> {
    let (key, value) = pair.split_once('=')?;
    let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some((key.trim().parse().ok()?, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Result<Option<Settings>, OtlpError> {
        settings(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_usual_variables_are_heard() {
        let plain = with(&[]).unwrap().unwrap();
        assert_eq!((plain.every, plain.headers.len()), (DEFAULT_INTERVAL, 1));
        assert!(with(&[(EXPORTER, "none")]).unwrap().is_none());
        let all = with(&[
            (INTERVAL, "1500"),
            (HEADERS[0], "authorization=Basic%20abc, x-team=a"),
            (HEADERS[1], "x-team=b"),
        ]);
        let all = all.unwrap().unwrap();
        assert_eq!(all.every, Duration::from_millis(1500));
        assert_eq!(all.headers["authorization"], "Basic abc");
        assert_eq!(all.headers["x-team"], "b");
        assert!(!format!("{all:?}").contains("abc"));
    }

    #[test]
    fn what_cannot_be_is_refused_and_shows_no_secret() {
        for (name, value) in [(INTERVAL, "soon"), (INTERVAL, "0")] {
            let error = with(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(value) && error.contains(name), "{error}");
        }
        let error = with(&[(HEADERS[0], "hunter2")]).unwrap_err().to_string();
        assert!(
            error.contains(HEADERS[0]) && !error.contains("hunter2"),
            "{error}"
        );
    }
}

//! An OpenTelemetry collector in this process. It receives metrics (OTLP over HTTP, protobuf) and keeps the last
//! message.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{NumberDataPoint, metric, number_data_point};
use prost::Message as _;
use tokio::{net::TcpListener, task::AbortHandle};

type Heard = Arc<Mutex<Vec<ExportMetricsServiceRequest>>>;

/// A running collector. Dropping the value ends it.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    heard: Heard,
    task: AbortHandle,
}

/// One data point of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The metric's name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The attributes of this point.
    pub attributes: BTreeMap<String, String>,
    /// The value; for a histogram, the count.
    pub value: f64,
}

impl Collector {
    /// Starts a collector on loopback.
    pub async fn start() -> Self {
        let heard = Heard::default();
        let routes = Router::new()
            .route("/v1/metrics", post(take))
            .with_state(Arc::clone(&heard));
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("bind a free port on loopback");
        let address = listener.local_addr().expect("a bound listener has an address");
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Self {
            address,
            heard,
            task: task.abort_handle(),
        }
    }

    /// The address, for `--otlp-endpoint`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The resource attributes of the last message.
    pub fn sender(&self) -> BTreeMap<String, String> {
        let last = self.last();
        let resources = last.resource_metrics.iter().flat_map(|one| &one.resource);
        resources
            .flat_map(|resource| texts(&resource.attributes))
            .collect()
    }

    /// The data points of the last message; empty if nothing was sent.
    pub fn series(&self) -> Vec<Series> {
        let last = self.last();
        let scopes = last.resource_metrics.iter().flat_map(|one| &one.scope_metrics);
        scopes
            .flat_map(|scope| &scope.metrics)
            .flat_map(|metric| {
                points(metric.data.as_ref())
                    .into_iter()
                    .map(|(attributes, value)| Series {
                        name: metric.name.clone(),
                        unit: metric.unit.clone(),
                        attributes,
                        value,
                    })
            })
            .collect()
    }

    /// The sum over all series of this name in the last message.
    pub fn total(&self, name: &str) -> Option<f64> {
        let all = self.series();
        let values: Vec<f64> = all
            .iter()
            .filter(|series| series.name == name)
            .map(|series| series.value)
            .collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    fn last(&self) -> ExportMetricsServiceRequest {
        self.heard.lock().unwrap().last().cloned().unwrap_or_default()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(State(heard): State<Heard>, body: Bytes) -> StatusCode {
    match ExportMetricsServiceRequest::decode(body) {
        Ok(message) => {
            heard.lock().unwrap().push(message);
            StatusCode::OK
        }
        Err(_) => StatusCode::BAD_REQUEST,
    }
}

type Point = (BTreeMap<String, String>, f64);

fn points(data: Option<&metric::Data>) -> Vec<Point> {
    match data {
        Some(metric::Data::Sum(sum)) => sum.data_points.iter().map(point).collect(),
        Some(metric::Data::Gauge(gauge)) => gauge.data_points.iter().map(point).collect(),
        Some(metric::Data::Histogram(histogram)) => histogram
            .data_points
            .iter()
            .map(|point| (texts(&point.attributes).collect(), count(point.count)))
            .collect(),
        _ => Vec::new(),
    }
}

fn point(point: &NumberDataPoint) -> Point {
    let value = match point.value {
        Some(number_data_point::Value::AsDouble(value)) => value,
        Some(number_data_point::Value::AsInt(value)) => count(value.unsigned_abs()),
        None => f64::NAN,
    };
    (texts(&point.attributes).collect(), value)
}

#[allow(clippy::cast_precision_loss, reason = "no test counts that far")]
fn count(number: u64) -> f64 {
    number as f64
}

fn texts(attributes: &[KeyValue]) -> impl Iterator<Item = (String, String)> {
    attributes.iter().filter_map(|attribute| {
        let value = attribute.value.as_ref()?.value.as_ref()?;
        match value {
            any_value::Value::StringValue(text) => Some((attribute.key.clone(), text.clone())),
            _ => None,
        }
    })
}

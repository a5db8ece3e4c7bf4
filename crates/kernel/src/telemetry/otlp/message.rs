//! Converts metric families to OTLP messages.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::exposition::{Family, Sample};

/// When counting began and when the values were read, in nanoseconds of Unix time.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) now: u64,
}

/// The message. `name_of` returns names that differ from those at `/metrics`.
pub(super) fn message(
    families: &[Family<'_>],
    name_of: impl Fn(&str) -> Option<&'static str>,
    resource: Resource,
    span: Span,
) -> ExportMetricsServiceRequest {
    let metrics = families
        .iter()
        .filter(|family| !family.samples.is_empty())
        .map(|family| {
            let shown = match family.samples.first() {
                Some(sample) if family.kind != "histogram" => sample.name,
                _ => family.name,
            };
            Metric {
                name: name_of(shown).unwrap_or(shown).to_owned(),
                description: family.help.to_owned(),
                unit: unit(family.unit).to_owned(),
                data: Some(data(family, span)),
                ..Metric::default()
            }
        })
        .collect();
    let scope = InstrumentationScope {
        name: "stanchion".to_owned(),
        ..InstrumentationScope::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope),
                metrics,
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

/// The protocol abbreviates units.
fn unit(word: &str) -> &str {
    match word {
        "seconds" => "s",
        "milliseconds" => "ms",
        "bytes" => "By",
        other => other,
    }
}

fn data(family: &Family<'_>, span: Span) -> metric::Data {
    let cumulative = AggregationTemporality::Cumulative.into();
    let points = || family.samples.iter().map(|sample| point(sample, span)).collect();
    match family.kind {
        "counter" => metric::Data::Sum(Sum {
            data_points: points(),
            aggregation_temporality: cumulative,
            is_monotonic: true,
        }),
        "histogram" => metric::Data::Histogram(Histogram {
            data_points: distributions(&family.samples, span),
            aggregation_temporality: cumulative,
        }),
        _ => metric::Data::Gauge(Gauge {
            data_points: points(),
        }),
    }
}

fn point(sample: &Sample<'_>, span: Span) -> NumberDataPoint {
    let whole = sample.value.parse().map(number_data_point::Value::AsInt);
    let value = whole.unwrap_or_else(|_| number_data_point::Value::AsDouble(number(sample.value)));
    NumberDataPoint {
        attributes: attributes(&sample.labels),
        start_time_unix_nano: span.start,
        time_unix_nano: span.now,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

/// One point for each set of labels. The buckets of `/metrics` are cumulative, those of the protocol are not.
fn distributions(samples: &[Sample<'_>], span: Span) -> Vec<HistogramDataPoint> {
    let mut points: BTreeMap<Vec<(&str, String)>, HistogramDataPoint> = BTreeMap::new();
    for sample in samples {
        let labels: Vec<_> = sample
            .labels
            .iter()
            .filter(|(key, _)| *key != "le")
            .cloned()
            .collect();
        let point = points
            .entry(labels.clone())
            .or_insert_with(|| HistogramDataPoint {
                attributes: attributes(&labels),
                start_time_unix_nano: span.start,
                time_unix_nano: span.now,
                ..HistogramDataPoint::default()
            });
        let bound = sample.labels.iter().find(|(key, _)| *key == "le");
        if let Some((_, bound)) = bound {
            let below: u64 = point.bucket_counts.iter().sum();
            let upwards: u64 = sample.value.parse().unwrap_or_default();
            point.bucket_counts.push(upwards.saturating_sub(below));
            let bound = number(bound);
            if bound.is_finite() {
                point.explicit_bounds.push(bound);
            }
        } else if sample.name.ends_with("_sum") {
            point.sum = Some(number(sample.value));
        } else {
            point.count = sample.value.parse().unwrap_or_default();
        }
    }
    points.into_values().collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

fn attributes(labels: &[(&str, String)]) -> Vec<KeyValue> {
    labels
        .iter()
        .map(|(key, value)| KeyValue {
            key: (*key).to_owned(),
            value: Some(AnyValue {
                value: Some(any_value::Value::StringValue(value.clone())),
            }),
            ..KeyValue::default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::exposition::families;
    use super::*;

    fn metrics(text: &str) -> Vec<Metric> {
        let name_of = |shown: &str| (shown == "pets_fed_total").then_some("pets.fed");
        let span = Span { start: 1, now: 2 };
        let mut message = message(&families(text), name_of, Resource::default(), span);
        message.resource_metrics.remove(0).scope_metrics.remove(0).metrics
    }

    #[test]
    fn a_counter_is_a_sum_that_only_grows() {
        let found =
            metrics("# HELP pets_fed Fed.\n# TYPE pets_fed counter\npets_fed_total{kind=\"cat\"} 3\n");
        assert_eq!(
            (found[0].name.as_str(), found[0].description.as_str()),
            ("pets.fed", "Fed.")
        );
        let Some(metric::Data::Sum(sum)) = &found[0].data else {
            panic!("no sum")
        };
        assert!(sum.is_monotonic);
        let point = &sum.data_points[0];
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1, 2));
        assert_eq!(point.value, Some(number_data_point::Value::AsInt(3)));
        assert_eq!(point.attributes, attributes(&[("kind", "cat".to_owned())]));
    }

    #[test]
    fn what_goes_up_and_down_is_a_gauge_in_its_unit() {
        let found = metrics("# TYPE t_seconds gauge\n# UNIT t_seconds seconds\nt_seconds 0.5\n");
        let Some(metric::Data::Gauge(gauge)) = &found[0].data else {
            panic!("no gauge")
        };
        assert_eq!(found[0].unit, "s");
        assert_eq!(
            gauge.data_points[0].value,
            Some(number_data_point::Value::AsDouble(0.5))
        );
    }

    #[test]
    fn buckets_are_counted_each_for_itself() {
        let found = metrics(
            "# TYPE d histogram\nd_sum{a=\"x\"} 6.5\nd_count{a=\"x\"} 4\nd_bucket{le=\"1.0\",a=\"x\"} 1\n\
             d_bucket{le=\"5.0\",a=\"x\"} 3\nd_bucket{le=\"+Inf\",a=\"x\"} 4\nd_sum{a=\"y\"} 0\nd_count{a=\"y\"} 0\n",
        );
        assert_eq!(found[0].name, "d");
        let Some(metric::Data::Histogram(histogram)) = &found[0].data else {
            panic!("no histogram")
        };
        let [x, y] = &histogram.data_points[..] else {
            panic!("{histogram:?}")
        };
        assert_eq!(x.explicit_bounds, [1.0, 5.0]);
        assert_eq!(x.bucket_counts, [1, 2, 1]);
        assert_eq!((x.count, x.sum), (4, Some(6.5)));
        assert_eq!(y.count, 0);
    }
}

//! The address of each signal: from the flag, or from the usual `OTEL_` variables.

use http::Uri;

use super::OtlpError;

/// Turns the export off.
const DISABLED: &str = "OTEL_SDK_DISABLED";
/// The collector for all signals.
const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// A kind of telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Numbers.
    Metrics,
}

impl Signal {
    fn path(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }

    /// The variable with the address of this signal only, which is used unchanged.
    fn endpoint(self) -> &'static str {
        match self {
            Self::Traces => "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            Self::Metrics => "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        }
    }

    /// The variable with the exporter of the signal: `otlp`, or `none`.
    fn exporter(self) -> &'static str {
        match self {
            Self::Traces => "OTEL_TRACES_EXPORTER",
            Self::Metrics => "OTEL_METRICS_EXPORTER",
        }
    }
}

/// The address of one signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The collector at this address, with a path for each signal.
    Collector(String),
    /// Exactly this address.
    Exactly(String),
}

impl Address {
    /// The address of the signal, if it is exported: a flag overrides the variables, and the variable of the signal
    /// overrides the general one. An empty variable counts as unset.
    pub fn of(signal: Signal, flag: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let said = |name: &str| {
            variable(name)
                .map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty())
        };
        if let Some(flag) = flag {
            return Some(flag.into());
        }
        let is_off = said(DISABLED).is_some_and(|text| text.eq_ignore_ascii_case("true"))
            || said(signal.exporter()).is_some_and(|text| text == "none");
        if is_off {
            return None;
        }
        let own = said(signal.endpoint()).map(Self::Exactly);
        own.or_else(|| said(ALL).map(Self::Collector))
    }

    /// The URL.
    pub(super) fn url(&self, signal: Signal) -> Result<Uri, OtlpError> {
        let (Self::Collector(endpoint) | Self::Exactly(endpoint)) = self;
        let wrong = || OtlpError::Endpoint {
            endpoint: endpoint.to_owned(),
        };
        let uri: Uri = endpoint.parse().map_err(|_| wrong())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(wrong());
        }
        if matches!(self, Self::Exactly(_)) {
            return Ok(uri);
        }
        let base = endpoint.trim_end_matches('/');
        let base = base.strip_suffix("/v1/traces").unwrap_or(base);
        format!("{base}/v1/{}", signal.path())
            .parse()
            .map_err(|_| wrong())
    }
}

impl From<&str> for Address {
    /// The collector's address; the address of its traces means the same.
    fn from(endpoint: &str) -> Self {
        Self::Collector(endpoint.to_owned())
    }
}

impl From<&String> for Address {
    fn from(endpoint: &String) -> Self {
        endpoint.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::Signal::{Metrics, Traces};
    use super::*;

    #[test]
    fn each_signal_has_its_path_below_the_collectors_address() {
        for (endpoint, signal, expected) in [
            ("http://collector:4318", Traces, "http://collector:4318/v1/traces"),
            (
                "http://collector:4318/",
                Metrics,
                "http://collector:4318/v1/metrics",
            ),
            (
                "https://example.com/otlp",
                Metrics,
                "https://example.com/otlp/v1/metrics",
            ),
            (
                "https://example.com/otlp/v1/traces",
                Traces,
                "https://example.com/otlp/v1/traces",
            ),
            (
                "https://example.com/otlp/v1/traces",
                Metrics,
                "https://example.com/otlp/v1/metrics",
            ),
        ] {
            assert_eq!(Address::from(endpoint).url(signal).unwrap().to_string(), expected);
        }
        let exactly = Address::Exactly("https://example.com/spans".into());
        assert_eq!(
            exactly.url(Traces).unwrap().to_string(),
            "https://example.com/spans"
        );
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for endpoint in ["", "collector:4318", "grpc://collector:4317", "not an address"] {
            let error = Address::from(endpoint).url(Traces).unwrap_err().to_string();
            assert!(error.contains("http://collector:4318"), "{endpoint}: {error}");
        }
    }

    #[test]
    fn the_usual_variables_switch_the_export_on_and_off() {
        let of = |signal, flag, variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            Address::of(signal, flag, variable)
        };
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own/spans");
        let exactly = || Some(Address::Exactly("http://own/spans".into()));
        assert_eq!(of(Traces, None, &[]), None);
        assert_eq!(of(Traces, None, &[all]), Some(Address::from("http://all:4318")));
        assert_eq!(of(Metrics, None, &[all]), Some(Address::from("http://all:4318")));
        assert_eq!(of(Traces, None, &[own]), exactly());
        assert_eq!(of(Metrics, None, &[own]), None);
        assert_eq!(of(Traces, None, &[all, own]), exactly());
        assert_eq!(
            of(Traces, Some("http://flag"), &[all, own]),
            Some(Address::from("http://flag"))
        );
        assert_eq!(of(Traces, None, &[all, ("OTEL_TRACES_EXPORTER", "none")]), None);
        assert_eq!(
            of(Metrics, None, &[all, ("OTEL_TRACES_EXPORTER", "none")]),
            Some(Address::from("http://all:4318"))
        );
        assert_eq!(of(Traces, None, &[all, ("OTEL_SDK_DISABLED", "true")]), None);
        assert_eq!(of(Traces, None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), None);
    }
}

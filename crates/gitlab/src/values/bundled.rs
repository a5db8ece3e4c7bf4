//! Switches off what the chart bundles and the cluster provides.
//!
//! By default the chart installs an ingress controller, a certificate manager, a Prometheus and a runner for each
//! instance, some of them with cluster-wide permissions. They are off in the lowest layer, because the spec has no
//! fields for them: a profile may switch one on. The backends are off in the layer of the spec, which configures them.

use serde_json::{Value, json};

use super::Input;

pub(super) const PARTS: [fn(&Input<'_>) -> Value; 3] = [helpers, certificates, entrance];

fn helpers(_: &Input<'_>) -> Value {
    json!({ "prometheus": { "install": false }, "gitlab-runner": { "install": false } })
}

fn certificates(input: &Input<'_>) -> Value {
    if input.chart.has_flag_for_cert_manager() {
        json!({ "installCertmanager": false })
    } else {
        json!({ "certmanager": { "install": false } })
    }
}

/// Ingresses, for the controller that most clusters have. Without this, a chart from 10 on would remove the Ingresses
/// of a running instance and wait for a gateway.
fn entrance(input: &Input<'_>) -> Value {
    let ingress = json!({ "enabled": true, "class": "nginx", "configureCertmanager": false });
    let global = if input.chart.prefers_gateways() {
        json!({
            "ingress": ingress,
            "gatewayApi": { "enabled": false, "installEnvoy": false, "configureCertmanager": false },
        })
    } else {
        json!({ "ingress": ingress })
    };
    json!({ "nginx-ingress": { "enabled": false }, "global": global })
}

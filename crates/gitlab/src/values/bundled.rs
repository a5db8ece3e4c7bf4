//! What the chart brings along and a cluster has already.
//!
//! By its defaults the chart installs an entrance, a certificate manager, a Prometheus and a runner, for each instance
//! anew, and some of them with rights over the whole cluster. They are off here, in the lowest layer, because the spec
//! says nothing about them: a profile may want one back. The backends are off in the layer of the spec, which speaks of
//! them.

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

/// Ingresses, for the controller that most clusters have. Left alone, a chart of the new kind would take the Ingresses
/// of a running instance away and wait for a gateway.
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

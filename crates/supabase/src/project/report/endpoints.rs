//! Addresses of the project and its components.

use stanchion_api::supabase::Endpoints;

use super::super::render_inputs::RenderInputs;
use super::super::target::Wanted;
use crate::components;
use crate::database::Names;

/// A warning if links in mails lead to an address that a browser cannot reach. Empty otherwise.
pub(super) fn warning(wanted: &Wanted, render_inputs: &RenderInputs) -> String {
    let names = Names::default();
    let project = render_inputs.project(wanted, &names);
    if wanted.secrets.smtp.is_none() || project.stated_url().is_some() {
        return String::new();
    }
    format!(
        "auth.smtpSecretRef is set and no public URL is: the links in mails lead to {}, which only pods reach; \
         set studio.publicUrl, ingress.host or gateway.hostnames",
        project.public_url()
    )
}

/// The addresses of a project. A component's address is its Service with the first port of its row.
pub(super) fn of(wanted: &Wanted, render_inputs: &RenderInputs) -> Endpoints {
    let at = |field: &str| {
        let (component, _) = components::wanted(&wanted.spec).find(|(row, _)| row.field == field)?;
        let port = component.ports.iter().find(|port| port.service)?;
        Some(format!(
            "http://{}:{}",
            component.child_name(&wanted.name),
            port.number
        ))
    };
    Endpoints {
        api: Some(render_inputs.project(wanted, &Names::default()).public_url()),
        auth: at("auth"),
        realtime: at("realtime"),
        storage: at("storageApi"),
        rest: at("postgrest"),
    }
}

//! Where people find the project, and its components each other.

use stanchion_api::supabase::Endpoints;

use super::super::standing::Standing;
use super::super::target::Wanted;
use crate::components;
use crate::database::Names;

/// The addresses of a project. A component is found at its Service, by the first port of its row.
pub(super) fn of(wanted: &Wanted, standing: &Standing) -> Endpoints {
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
        api: Some(standing.project(wanted, &Names::default()).public_url()),
        auth: at("auth"),
        realtime: at("realtime"),
        storage: at("storageApi"),
        rest: at("postgrest"),
    }
}

//! Finds the served versions of a kind.

use kube::Client;

use super::{ExternalKind, ServedKind};

/// How the cluster serves a kind, if it does in a version that the controller can write.
pub(crate) async fn discover(
    client: &Client,
    kind: &'static ExternalKind,
) -> Result<Option<ServedKind>, kube::Error> {
    let mut versions = Vec::new();
    for version in kind.versions {
        let api_version = format!("{}/{version}", kind.group);
        match client.list_api_group_resources(&api_version).await {
            Ok(list) if list.resources.iter().any(|served| served.name == kind.plural) => {
                versions.push(*version);
            }
            Ok(_) => {}
            // The response for a missing version is not a Status, so only its code counts.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(versions.first().copied().map(|best| ServedKind {
        resource: kind.at(best),
        versions,
    }))
}

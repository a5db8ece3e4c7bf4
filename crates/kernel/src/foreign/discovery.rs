//! In which versions a kind is served.

use kube::Client;

use super::{Foreign, Served};

/// How the cluster serves a kind, if it does in any version that can be written here.
pub(crate) async fn discover(client: &Client, kind: &'static Foreign) -> Result<Option<Served>, kube::Error> {
    let mut versions = Vec::new();
    for version in kind.versions {
        let api_version = format!("{}/{version}", kind.group);
        match client.list_api_group_resources(&api_version).await {
            Ok(list) if list.resources.iter().any(|served| served.name == kind.plural) => {
                versions.push(*version);
            }
            Ok(_) => {}
            // The answer about a version that is not there is no Status, so only its code counts.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(versions.first().copied().map(|best| Served {
        resource: kind.at(best),
        versions,
    }))
}

//! In which version a kind is served.

use kube::Client;
use kube::core::ApiResource;

use super::Foreign;

/// The best version of a kind that the cluster serves and that can be written here.
pub(crate) async fn discover(client: &Client, kind: &Foreign) -> Result<Option<ApiResource>, kube::Error> {
    for version in kind.versions {
        let resource = kind.at(version);
        match client.list_api_group_resources(&resource.api_version).await {
            Ok(list) if list.resources.iter().any(|served| served.name == kind.plural) => {
                return Ok(Some(resource));
            }
            Ok(_) => {}
            // The answer about a version that is not there is no Status, so only its code counts.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

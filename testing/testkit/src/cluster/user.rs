//! Users with real RBAC permissions: a `ServiceAccount`, its token, and its Roles.

use std::{path::PathBuf, time::Duration};

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
};
use kube::{
    Api, Client, Config,
    api::{ObjectMeta, PostParams},
};

use super::{Cluster, connection};
use crate::{unique, wait};

const RIGHTS_DEADLINE: Duration = Duration::from_mins(1);

/// Permissions of a [`User`].
#[derive(Clone, Debug)]
pub enum Grant {
    /// A Role in a namespace.
    In(String, Vec<PolicyRule>),
    /// A cluster-wide `ClusterRole`.
    Everywhere(Vec<PolicyRule>),
}

/// A rule for verbs on resources of one API group.
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

/// A rule to read a non-resource path, such as `/metrics`.
pub fn path_rule(path: &str) -> PolicyRule {
    PolicyRule {
        non_resource_urls: Some(vec![path.to_owned()]),
        verbs: vec!["get".to_owned()],
        ..PolicyRule::default()
    }
}

/// A user with exactly the permissions of its RBAC rules.
#[derive(Clone, Debug)]
pub struct User {
    name: String,
    kubeconfig: PathBuf,
    token: String,
}

impl User {
    /// The name in the audit log: `system:serviceaccount:NAMESPACE:NAME`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A kubeconfig file, for an operator that runs as a process.
    pub fn kubeconfig_path(&self) -> &std::path::Path {
        &self.kubeconfig
    }

    /// The token in the kubeconfig.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The configuration in the kubeconfig.
    pub async fn config(&self) -> Config {
        connection::config(&self.kubeconfig).await
    }

    /// A client of this user.
    pub async fn client(&self) -> Client {
        connection::client(&self.kubeconfig).await
    }
}

impl Cluster {
    /// Creates a `ServiceAccount` with these permissions and waits until the API server honours them.
    pub async fn user(&self, namespace: &str, name: &str, grants: &[Grant]) -> User {
        let client = self.client().await;
        let account = ServiceAccount {
            metadata: named(name),
            ..ServiceAccount::default()
        };
        create(Api::namespaced(client.clone(), namespace), &account).await;
        for grant in grants {
            bind(&client, namespace, name, grant).await;
        }
        let user = self.log_in(namespace, name).await;
        for grant in grants {
            honoured(&client, &user.name, grant).await;
        }
        user
    }

    /// Whether RBAC allows it: `may(user.name(), "list", "", "secrets", Some("default"))`.
    pub async fn may(
        &self,
        user: &str,
        verb: &str,
        group: &str,
        resource: &str,
        namespace: Option<&str>,
    ) -> bool {
        let attributes = ResourceAttributes {
            namespace: namespace.map(str::to_owned),
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        let answer = review(&self.client().await, user, attributes).await;
        answer.unwrap_or_else(|error| panic!("may {user} {verb} {resource}: {error}"))
    }

    /// A user for an existing `ServiceAccount`, with its existing permissions.
    pub async fn log_in(&self, namespace: &str, name: &str) -> User {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await, namespace);
        let wish = TokenRequest {
            spec: TokenRequestSpec {
                expiration_seconds: Some(24 * 3600),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let granted = accounts
            .create_token_request(name, &PostParams::default(), &wish)
            .await
            .unwrap_or_else(|error| panic!("a token for {namespace}/{name}: {error}"));
        let token = granted
            .status
            .expect("a token request is answered with a token")
            .token;
        let server = self.config().await.cluster_url.to_string();
        let file = self.directory.join(format!("{namespace}-{name}.kubeconfig"));
        let kubeconfig = connection::write_kubeconfig(&file, &server, &self.directory.join("ca.crt"), &token)
            .unwrap_or_else(|error| panic!("{error}"));
        User {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            kubeconfig,
            token,
        }
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

async fn create<K>(api: Api<K>, object: &K)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    api.create(&PostParams::default(), object)
        .await
        .unwrap_or_else(|error| panic!("{object:?}: {error}"));
}

async fn bind(client: &Client, namespace: &str, account: &str, grant: &Grant) {
    let name = unique::name(&format!("{account}-"));
    let subjects = Some(vec![Subject {
        kind: "ServiceAccount".to_owned(),
        name: account.to_owned(),
        namespace: Some(namespace.to_owned()),
        ..Subject::default()
    }]);
    let role_ref = |kind: &str| RoleRef {
        api_group: "rbac.authorization.k8s.io".to_owned(),
        kind: kind.to_owned(),
        name: name.clone(),
    };
    match grant {
        Grant::In(place, rules) => {
            let role = Role {
                metadata: named(&name),
                rules: Some(rules.clone()),
            };
            create(Api::namespaced(client.clone(), place), &role).await;
            let binding = RoleBinding {
                metadata: named(&name),
                role_ref: role_ref("Role"),
                subjects,
            };
            create(Api::namespaced(client.clone(), place), &binding).await;
        }
        Grant::Everywhere(rules) => {
            let role = ClusterRole {
                metadata: named(&name),
                rules: Some(rules.clone()),
                aggregation_rule: None,
            };
            create(Api::all(client.clone()), &role).await;
            let binding = ClusterRoleBinding {
                metadata: named(&name),
                role_ref: role_ref("ClusterRole"),
                subjects,
            };
            create(Api::all(client.clone()), &binding).await;
        }
    }
}

/// The authorizer receives new bindings through a watch: a request that comes too early is forbidden.
async fn honoured(client: &Client, user: &str, grant: &Grant) {
    let (namespace, rules) = match grant {
        Grant::In(namespace, rules) => (Some(namespace.clone()), rules),
        Grant::Everywhere(rules) => (None, rules),
    };
    let Some(rule) = rules.last() else { return };
    let first = |texts: &Option<Vec<String>>| texts.as_ref().and_then(|texts| texts.first().cloned());
    let Some(resource) = first(&rule.resources) else {
        return;
    };
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource.to_owned(), Some(subresource.to_owned())),
        None => (resource, None),
    };
    let question = ResourceAttributes {
        namespace,
        group: first(&rule.api_groups),
        resource: Some(resource),
        subresource,
        name: first(&rule.resource_names),
        verb: rule.verbs.first().cloned(),
        ..ResourceAttributes::default()
    };
    wait::eventually(
        RIGHTS_DEADLINE,
        "granted rights to be honoured",
        async || match review(client, user, question.clone()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err("not allowed yet".to_owned()),
            Err(error) => Err(error.to_string()),
        },
    )
    .await;
}

/// The authorizer's answer.
async fn review(client: &Client, user: &str, attributes: ResourceAttributes) -> kube::Result<bool> {
    let question = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(user.to_owned()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &question).await?;
    Ok(answer.status.unwrap_or_default().allowed)
}

//! The table of controllers: one row per system. Everything that depends on the enabled controllers (arguments, RBAC
//! rules, required CRDs, webhooks) comes from this table.

use std::sync::Arc;

use kube::core::ApiResource;
use kube::core::object::HasStatus;
use kube::{Client, Resource};
use stanchion_api::{
    GitlabInstance, GitlabProfile, GitlabVersionMap, PostgresInstance, PostgresPolicy, PostgresPolicyPlan,
    PostgresUser, SupabaseProject,
};
use stanchion_gitlab::GitlabController;
use stanchion_kernel::admission::{Webhook, validation};
use stanchion_kernel::driver::{Operator, rules};
use stanchion_kernel::rbac::Rule;
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::scope::Scope;
use stanchion_policy::PolicyController;
use stanchion_supabase::ProjectController;
use stanchion_user::{InstanceController, UserController};

use crate::run::Setup;

/// A system: the controllers that are enabled together.
pub(crate) struct Controller {
    /// The name for `--controllers`.
    pub(crate) name: &'static str,
    /// The kinds that the cluster must serve.
    pub(crate) kinds: fn() -> Vec<Kind>,
    /// All RBAC rules that it needs.
    pub(crate) rules: fn() -> Vec<Rule>,
    /// The roles that it binds for others, by name.
    pub(crate) roles: fn() -> Vec<(&'static str, Vec<Rule>)>,
    /// The webhooks that check its objects.
    pub(crate) webhooks: fn(&Client, &[Scope], &Arc<FingerprintKey>) -> Vec<Webhook>,
    /// Adds it to the operator, once for each scope.
    pub(crate) add: fn(&Setup, &[Scope], &mut Operator),
}

/// A kind that the cluster must serve.
pub(crate) struct Kind {
    pub(crate) resource: ApiResource,
    /// Whether it has a status subresource. The CRD says so, too, but its schema takes megabytes to build.
    pub(crate) has_status: bool,
}

impl Kind {
    fn with_status<K: Resource<DynamicType = ()> + HasStatus>() -> Self {
        Self {
            resource: ApiResource::erase::<K>(&()),
            has_status: true,
        }
    }

    fn without_status<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            resource: ApiResource::erase::<K>(&()),
            has_status: false,
        }
    }
}

/// The table.
pub(crate) const ALL: &[Controller] = &[
    Controller {
        name: "user",
        kinds: || {
            vec![
                Kind::with_status::<PostgresUser>(),
                Kind::with_status::<PostgresInstance>(),
            ]
        },
        rules: || [rules::<UserController>(), rules::<InstanceController>()].concat(),
        roles: Vec::new,
        webhooks: |client, scopes, _| stanchion_user::webhooks(client, scopes),
        add: |setup, scopes, operator| {
            let setup = stanchion_user::Setup {
                default_instance: setup.default_instance.clone(),
                openings: setup.openings.clone(),
                pools: setup.pools.clone(),
                fingerprints: Arc::clone(&setup.fingerprints),
            };
            for scope in scopes {
                operator.add(UserController::new(setup.clone()), scope);
                operator.add(InstanceController::new(setup.clone()), scope);
            }
        },
    },
    Controller {
        name: "supabase",
        kinds: || vec![Kind::with_status::<SupabaseProject>()],
        rules: rules::<ProjectController>,
        roles: Vec::new,
        webhooks: |client, scopes, _| stanchion_supabase::webhooks(client, scopes),
        add: |setup, scopes, operator| {
            let setup = stanchion_supabase::Setup {
                pools: setup.pools.clone(),
                fingerprints: Arc::clone(&setup.fingerprints),
                allowed_images: setup.allowed_images.clone(),
            };
            for scope in scopes {
                operator.add(ProjectController::new(setup.clone()), scope);
            }
        },
    },
    Controller {
        name: "policy",
        kinds: || {
            vec![
                Kind::with_status::<PostgresPolicy>(),
                Kind::with_status::<PostgresPolicyPlan>(),
            ]
        },
        rules: rules::<PolicyController>,
        roles: Vec::new,
        webhooks: |_, _, key| stanchion_policy::plans::webhooks(key),
        add: |setup, scopes, operator| {
            let setup = stanchion_policy::Setup::new(
                setup.pools.clone(),
                Arc::clone(&setup.fingerprints),
                &setup.metrics,
            );
            for scope in scopes {
                operator.add(PolicyController::new(setup.clone(), scope.clone()), scope);
            }
        },
    },
    Controller {
        name: "gitlab",
        kinds: || {
            vec![
                Kind::with_status::<GitlabInstance>(),
                Kind::without_status::<GitlabProfile>(),
                Kind::without_status::<GitlabVersionMap>(),
            ]
        },
        rules: rules::<GitlabController>,
        roles: || {
            vec![(
                stanchion_gitlab::account::ROLE,
                stanchion_gitlab::account::release_rules(),
            )]
        },
        webhooks: |_, _, _| vec![validation::<GitlabController>()],
        add: |setup, scopes, operator| {
            let setup = stanchion_gitlab::Setup {
                pools: setup.pools.clone(),
                fingerprints: Arc::clone(&setup.fingerprints),
                tenants: Arc::clone(&setup.gitlab_tenants),
            };
            for scope in scopes {
                operator.add(GitlabController::new(setup.clone()), scope);
            }
        },
    },
];

/// The enabled controllers.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Choice {
    /// Controllers to run, separated by commas. Default: all
    #[arg(
        long,
        env = "STANCHION_CONTROLLERS",
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = names()
    )]
    controllers: Vec<String>,
}

fn names() -> clap::builder::PossibleValuesParser {
    ALL.iter().map(|controller| controller.name).into()
}

impl Choice {
    /// All controllers.
    pub(crate) fn everything() -> Self {
        Self {
            controllers: Vec::new(),
        }
    }

    /// The controllers of these names; an empty list selects all.
    pub(crate) fn of(names: &[&str]) -> Self {
        Self {
            controllers: names.iter().map(ToString::to_string).collect(),
        }
    }

    /// The given names; empty for all.
    pub(crate) fn chosen(&self) -> impl Iterator<Item = &String> {
        self.controllers.iter()
    }

    /// The selected rows, in the order of the table.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &'static Controller> {
        ALL.iter().filter(|controller| {
            self.controllers.is_empty() || self.controllers.iter().any(|name| name == controller.name)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube::{Config, ResourceExt as _};

    use super::*;

    /// `stanchion doctor` expects them of every installation that serves webhooks.
    #[tokio::test]
    async fn every_controller_has_webhooks() {
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let key = Arc::new(FingerprintKey::generate());
        for controller in ALL {
            let webhooks = (controller.webhooks)(&client, &Scope::from_namespaces(&[]), &key);
            assert!(!webhooks.is_empty(), "{}", controller.name);
        }
    }

    #[test]
    fn kinds_have_a_status_if_their_crds_have_one() {
        let kinds = ALL.iter().flat_map(|controller| (controller.kinds)());
        let kinds = kinds.map(|kind| {
            let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
            (name, kind.has_status)
        });
        let crds = stanchion_api::crds().into_iter().map(|crd| {
            let mut versions = crd.spec.versions.iter();
            let has_status = versions.any(|version| {
                let subresources = version.subresources.as_ref();
                subresources.is_some_and(|subresources| subresources.status.is_some())
            });
            (crd.name_any(), has_status)
        });
        assert_eq!(kinds.collect::<BTreeMap<_, _>>(), crds.collect());
    }
}

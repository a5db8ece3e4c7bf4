//! The kinds with a status, and their names on the command line.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, GroupVersionKind};

/// A kind with a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in the API.
    pub resource: ApiResource,
    /// Every name that kubectl accepts for it, in lower case.
    names: Vec<String>,
}

impl Kind {
    fn of(crd: &CustomResourceDefinition) -> Option<Self> {
        let version = crd.spec.versions.iter().find(|version| version.storage)?;
        version.subresources.as_ref()?.status.as_ref()?;
        let names = &crd.spec.names;
        let gvk = GroupVersionKind::gvk(&crd.spec.group, &version.name, &names.kind);
        let plural = &names.plural;
        let mut known = vec![
            plural.clone(),
            format!("{plural}.{}", crd.spec.group),
            names.kind.to_lowercase(),
        ];
        known.extend(names.singular.clone());
        known.extend(names.short_names.clone().unwrap_or_default());
        Some(Self {
            resource: ApiResource::from_gvk_with_plural(&gvk, plural),
            names: known,
        })
    }

    /// The plural name for `kubectl`: `postgresusers`.
    pub fn plural(&self) -> &str {
        &self.resource.plural
    }
}

/// All kinds with a status. To build the schemas of their CRDs takes megabytes, so that happens once.
pub fn with_status() -> &'static [Kind] {
    static KINDS: LazyLock<Vec<Kind>> =
        LazyLock::new(|| stanchion_api::crds().iter().filter_map(Kind::of).collect());
    &KINDS
}

/// The requested kind or object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub kind: Kind,
    /// The name of one object.
    pub name: Option<String>,
}

impl Subject {
    /// `KIND` or `KIND/NAME`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, name) = text
            .split_once('/')
            .map_or((text, None), |(kind, name)| (kind, Some(name)));
        let lower = kind.to_lowercase();
        let kinds = with_status();
        let known: Vec<&str> = kinds.iter().map(Kind::plural).collect();
        let known = known.join(", ");
        let found = kinds.iter().find(|kind| kind.names.contains(&lower)).cloned();
        let found =
            found.ok_or_else(|| format!("there is no kind \"{kind}\" with a status: use one of {known}"))?;
        match name {
            Some("") => Err(format!("the name is missing after \"{text}\"")),
            name => Ok(Self {
                kind: found,
                name: name.map(ToOwned::to_owned),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_all_the_names_that_kubectl_knows() {
        for text in [
            "PostgresUser",
            "postgresuser",
            "postgresusers",
            "postgresusers.db.example.com",
        ] {
            let subject = Subject::parse(text).unwrap();
            assert_eq!((subject.kind.plural(), subject.name), ("postgresusers", None));
        }
        let subject = Subject::parse("supabaseproject/demo").unwrap();
        assert_eq!(subject.name.as_deref(), Some("demo"));
    }

    #[test]
    fn what_is_no_kind_is_refused_with_the_kinds_that_there_are() {
        let said = Subject::parse("pods").unwrap_err();
        assert!(
            said.contains("\"pods\"") && said.contains("gitlabinstances"),
            "{said}"
        );
        assert!(Subject::parse("gitlabprofiles").is_err(), "it has no status");
        assert!(
            Subject::parse("postgresuser/")
                .unwrap_err()
                .contains("name is missing")
        );
    }
}

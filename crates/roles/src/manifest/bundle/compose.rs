//! Composes the documents of a bundle into one manifest.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::{Claims, ManagedKey, SchemaFacet};
use super::{Bundle, BundleSource, Document, Facet};
use crate::expand::{self, Scope, expand};
use crate::manifest::diagnostic::judge;
use crate::manifest::types::{DefaultPrivilege, Manifest, Schema, ScopeType, schema_of};
use crate::manifest::{Diagnostic, Invalid, Path, Severity, Strictness, check};

/// A bundle as one manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Composed {
    /// The rules of all documents.
    pub manifest: Manifest,
    /// The scopes of all documents.
    pub scope: Scope,
    /// Which document manages what.
    pub claims: Claims,
    /// Findings that do not stop.
    pub warnings: Vec<Diagnostic>,
}

/// Composes the documents. Each stays within its own scope, and no two scopes overlap.
pub fn compose(
    bundle: &Bundle,
    sources: &[BundleSource],
    strictness: Strictness,
) -> Result<Composed, Invalid> {
    if sources.is_empty() {
        return Err(problem("policy bundle must declare at least one source").into());
    }
    let mut composer = Composer {
        manifest: Manifest {
            default_owner: bundle.shared.default_owner.clone(),
            role_pattern: bundle.shared.role_pattern.clone(),
            auth_providers: bundle.shared.auth_providers.clone(),
            profiles: bundle.shared.profiles.clone(),
            ..Manifest::default()
        },
        schemas: BTreeMap::new(),
        scope: Scope {
            database: true,
            ..Scope::default()
        },
        claims: Claims::default(),
        problems: vec![],
    };
    for source in sources {
        composer.add(source);
    }
    composer.finish(strictness)
}

fn problem(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Severity::Error, Path::default(), message)
}

struct Composer {
    manifest: Manifest,
    /// One schema can be in several documents, each with its facet. The number keeps the order.
    schemas: BTreeMap<String, (usize, Schema)>,
    scope: Scope,
    claims: Claims,
    problems: Vec<Diagnostic>,
}

impl Composer {
    fn add(&mut self, source: &BundleSource) {
        let name = source.name();
        let document = &source.document;
        let roles: BTreeSet<&str> = document.scope.roles.iter().map(String::as_str).collect();
        for role in &roles {
            self.claim(
                &ManagedKey::Role {
                    name: (*role).to_owned(),
                },
                name,
            );
            self.scope.roles.insert((*role).to_owned());
        }
        for schema in &document.scope.schemas {
            for facet in &schema.facets {
                let facets = self.scope.schemas.entry(schema.name.clone()).or_default();
                match facet {
                    Facet::Owner => facets.owner = true,
                    Facet::Bindings => facets.bindings = true,
                }
                self.claim(
                    &ManagedKey::SchemaFacet(SchemaFacet {
                        schema: schema.name.clone(),
                        facet: *facet,
                    }),
                    name,
                );
            }
        }
        let declared = document.roles.iter().map(|role| &role.name);
        for role in declared.chain(document.retirements.iter().map(|retirement| &retirement.role)) {
            if !roles.contains(role.as_str()) {
                self.problems.push(problem(format!(
                    "policy document \"{name}\" defines role \"{role}\" outside its declared scope"
                )));
            }
        }
        for schema in &document.schemas {
            self.schema(schema, name, document);
        }
        self.privileges(name, document, &roles);
        self.manifest.roles.extend(document.roles.iter().cloned());
        self.manifest.grants.extend(document.grants.iter().cloned());
        self.manifest
            .default_privileges
            .extend(document.default_privileges.iter().cloned());
        self.manifest
            .memberships
            .extend(document.memberships.iter().cloned());
        self.manifest
            .retirements
            .extend(document.retirements.iter().cloned());
    }

    fn schema(&mut self, schema: &Schema, name: &str, document: &Document) {
        let owns = schema.owner.is_some() || self.manifest.default_owner.is_some();
        let binds = !schema.profiles.is_empty() || schema.role_pattern.is_some();
        if owns {
            self.need(Facet::Owner, &schema.name, name, document);
        }
        if binds {
            self.need(Facet::Bindings, &schema.name, name, document);
        }
        let order = self.schemas.len();
        let (_, merged) = self.schemas.entry(schema.name.clone()).or_insert_with(|| {
            (
                order,
                Schema {
                    name: schema.name.clone(),
                    profiles: vec![],
                    role_pattern: None,
                    owner: None,
                },
            )
        });
        merged.owner = merged.owner.take().or_else(|| schema.owner.clone());
        merged.role_pattern = merged.role_pattern.take().or_else(|| schema.role_pattern.clone());
        merged.profiles.extend(schema.profiles.iter().cloned());
    }

    fn privileges(&mut self, name: &str, document: &Document, roles: &BTreeSet<&str>) {
        for grant in &document.grants {
            if let Some(schema) = schema_of(&grant.object) {
                self.need(Facet::Bindings, schema, name, document);
            }
            let key = ManagedKey::Grant {
                role: grant.role.clone(),
                object_type: grant.object.kind,
                schema: grant.object.schema.clone(),
                name: grant.object.name.clone(),
            };
            self.claim(&key, name);
        }
        for entry in &document.default_privileges {
            let owner = entry
                .owner
                .clone()
                .or_else(|| self.manifest.default_owner.clone())
                .unwrap_or_default();
            match scope_of(entry) {
                Some(schema) => self.need(Facet::Bindings, schema, name, document),
                None if !roles.contains(owner.as_str()) => self.problems.push(problem(format!(
                    "policy document \"{name}\" declares global default privileges for owner \"{owner}\", a role outside \
                     its declared scope: they affect every schema"
                ))),
                None => {}
            }
            for grant in &entry.grant {
                let key = ManagedKey::DefaultPrivilege {
                    owner: owner.clone(),
                    scope: scope_of(entry).map(str::to_owned),
                    on_type: grant.on_type,
                    grantee: grant.role.clone().unwrap_or_default(),
                };
                self.claim(&key, name);
            }
        }
        for membership in &document.memberships {
            for member in &membership.members {
                let key = ManagedKey::Membership {
                    role: membership.role.clone(),
                    member: member.name.clone(),
                };
                self.claim(&key, name);
            }
        }
    }

    fn claim(&mut self, key: &ManagedKey, document: &str) {
        if let Err(holder) = self.claims.claim(key.clone(), document) {
            self.problems.push(problem(format!(
                "policy documents \"{holder}\" and \"{document}\" both manage {key}"
            )));
        }
    }

    fn need(&mut self, facet: Facet, schema: &str, name: &str, document: &Document) {
        let has = document
            .scope
            .schemas
            .iter()
            .any(|scoped| scoped.name == schema && scoped.facets.contains(&facet));
        if !has {
            self.problems.push(problem(format!(
                "policy document \"{name}\" manages schema \"{schema}\" {} outside its declared scope",
                facet.name()
            )));
        }
    }

    fn finish(mut self, strictness: Strictness) -> Result<Composed, Invalid> {
        let mut schemas: Vec<_> = self.schemas.into_values().collect();
        schemas.sort_by_key(|(order, _)| *order);
        self.manifest.schemas = schemas.into_iter().map(|(_, schema)| schema).collect();
        let size = expand::Size::of(&self.manifest);
        let admitted = expand::Bounds::ALONE.admit(size);
        admitted.map_err(|large| problem(large.to_string()))?;
        let mut findings = self.problems;
        findings.extend(check(&self.manifest).into_iter().map(|mut finding| {
            finding.message = format!("composed policy failed validation: {}", finding.message);
            finding
        }));
        let warnings = judge(findings, strictness)?;
        // Generated roles belong to the document that binds their profile; no document lists them.
        self.scope.roles.extend(expand(&self.manifest).roles.into_keys());
        for schema in &self.manifest.schemas {
            self.scope.schemas.entry(schema.name.clone()).or_default();
        }
        Ok(Composed {
            manifest: self.manifest,
            scope: self.scope,
            claims: self.claims,
            warnings,
        })
    }
}

impl Composed {
    /// The desired state within the bundle's scope.
    pub fn expand(&self) -> expand::Desired {
        let mut desired = expand(&self.manifest);
        desired.scope = self.scope.clone();
        desired
    }
}

fn scope_of(entry: &DefaultPrivilege) -> Option<&str> {
    match &entry.scope {
        Some(scope) if scope.kind == ScopeType::Global => None,
        Some(scope) => scope.schema.as_deref(),
        None => entry.schema.as_deref(),
    }
}

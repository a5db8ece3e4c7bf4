//! Bundles: `render-bundle`, and the plan of a bundle, in which each change has the document that declares it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::args::RenderBundleArgs;
use super::console::Console;
use super::source::LoadedBundle;
use super::{DRIFT, Failure, Name, OK, While as _};
use stanchion_roles::generate::to_yaml;
use stanchion_roles::graph::ManagedScope;
use stanchion_roles::manifest::{Facet, ManagedKey, SchemaFacet, Strictness};
use stanchion_roles::model::ObjectType;
use stanchion_roles::plan::{Change, Grant, Plan, Revoke};

/// pgroles' format `pgroles.bundle_plan.v2`.
#[derive(Serialize)]
pub(super) struct BundlePlan<'a> {
    schema_version: &'static str,
    managed_scope: ManagedScope,
    changes: Vec<Annotated<'a>>,
}

#[derive(Serialize)]
struct Annotated<'a> {
    category: &'static str,
    owner: Owner,
    change: &'a Change,
}

/// The document that manages an item.
#[derive(Serialize)]
struct Owner {
    document: String,
    managed_key: ManagedKey,
}

impl BundlePlan<'_> {
    /// The document of each change.
    pub(super) fn documents(&self) -> Vec<String> {
        self.changes
            .iter()
            .map(|change| change.owner.document.clone())
            .collect()
    }

    /// The document of each change, and the managed item.
    pub(super) fn owners(&self) -> Vec<Value> {
        self.changes
            .iter()
            .map(|change| serde_json::to_value(&change.owner).unwrap_or_default())
            .collect()
    }
}

/// Each change with the document that manages the changed item.
pub(super) fn annotated<'a>(plan: &'a Plan, bundle: &LoadedBundle) -> BundlePlan<'a> {
    let generated = generated_roles(bundle);
    let changes = plan
        .changes
        .iter()
        .map(|change| {
            let (category, keys) = keys(change, &generated);
            let first = keys.first().cloned();
            let (managed_key, document) = match bundle.composed.claims.owner(keys) {
                Some((key, document)) => (key, document.to_owned()),
                None => (
                    first.unwrap_or(ManagedKey::Role { name: String::new() }),
                    "shared".to_owned(),
                ),
            };
            Annotated {
                category,
                owner: Owner {
                    document,
                    managed_key,
                },
                change,
            }
        })
        .collect();
    BundlePlan {
        schema_version: "pgroles.bundle_plan.v2",
        managed_scope: (&bundle.composed.scope).into(),
        changes,
    }
}

/// The schema whose bindings generate each role.
fn generated_roles(bundle: &LoadedBundle) -> BTreeMap<String, String> {
    let manifest = &bundle.composed.manifest;
    let roles = manifest.schemas.iter().flat_map(|schema| {
        schema.profiles.iter().map(move |profile| {
            let pattern = stanchion_roles::expand::pattern_of(manifest, schema);
            (
                stanchion_roles::expand::generated_name(pattern, &schema.name, profile),
                schema.name.clone(),
            )
        })
    });
    roles.collect()
}

/// The items that a change concerns, from the most to the least specific.
fn keys(change: &Change, generated: &BTreeMap<String, String>) -> (&'static str, Vec<ManagedKey>) {
    let facet = |schema: &str, facet| {
        ManagedKey::SchemaFacet(SchemaFacet {
            schema: schema.to_owned(),
            facet,
        })
    };
    let role = |name: &str| match generated.get(name) {
        Some(schema) => facet(schema, Facet::Bindings),
        None => ManagedKey::Role {
            name: name.to_owned(),
        },
    };
    match change {
        Change::CreateRole { name, .. }
        | Change::AlterRole { name, .. }
        | Change::SetComment { name, .. }
        | Change::SetPassword { name, .. } => ("role", vec![role(name)]),
        Change::CreateSchema { name, .. }
        | Change::AlterSchemaOwner { name, .. }
        | Change::EnsureSchemaOwnerPrivileges { name, .. } => (
            "schema",
            vec![facet(name, Facet::Owner), facet(name, Facet::Bindings)],
        ),
        Change::Grant(Grant {
            role: grantee,
            object_type,
            schema,
            name,
            ..
        })
        | Change::Revoke(Revoke {
            role: grantee,
            object_type,
            schema,
            name,
            ..
        }) => (
            "grant",
            of_object(grantee, *object_type, schema.as_ref(), name.as_ref(), &role),
        ),
        Change::SetDefaultPrivilege(default) | Change::RevokeDefaultPrivilege(default) => {
            let schema = default.scope.schema();
            let own = ManagedKey::DefaultPrivilege {
                owner: default.owner.clone(),
                scope: schema.map(str::to_owned),
                on_type: default.on_type,
                grantee: default.grantee.clone(),
            };
            let of_schema = schema.map(|schema| facet(schema, Facet::Bindings));
            (
                "default_privilege",
                [own]
                    .into_iter()
                    .chain(of_schema)
                    .chain([role(&default.owner)])
                    .collect(),
            )
        }
        Change::AddMember {
            role: group, member, ..
        }
        | Change::UpdateMemberOptions {
            role: group, member, ..
        }
        | Change::RemoveMember {
            role: group, member, ..
        } => {
            let own = ManagedKey::Membership {
                role: group.clone(),
                member: member.clone(),
            };
            ("membership", vec![own, role(group), role(member)])
        }
        Change::ReassignOwned { from_role: name, .. }
        | Change::DropOwned { role: name }
        | Change::DropRole { name }
        | Change::TerminateSessions { role: name, .. } => ("retirement", vec![role(name)]),
    }
}

fn of_object(
    grantee: &str,
    kind: ObjectType,
    schema: Option<&String>,
    name: Option<&String>,
    role: &dyn Fn(&str) -> ManagedKey,
) -> Vec<ManagedKey> {
    let own = ManagedKey::Grant {
        role: grantee.to_owned(),
        object_type: kind,
        schema: schema.cloned(),
        name: name.cloned(),
    };
    let place = if kind == ObjectType::Schema { name } else { schema };
    let of_schema = place.map(|schema| {
        ManagedKey::SchemaFacet(SchemaFacet {
            schema: schema.clone(),
            facet: Facet::Bindings,
        })
    });
    [own]
        .into_iter()
        .chain(of_schema)
        .chain([role(grantee)])
        .collect()
}

/// `render-bundle`
pub(super) fn render(
    args: &RenderBundleArgs,
    strictness: Strictness,
    name: Name,
    console: &mut Console<'_>,
) -> Result<u8, Failure> {
    let bundle = LoadedBundle::read(&args.bundle, strictness, console)?;
    let mut text = if args.no_header {
        String::new()
    } else {
        header(args, name, &bundle)
    };
    text.push_str(&to_yaml(&bundle.composed.manifest).doing("failed to write the manifest")?);
    if let Some(path) = &args.check {
        let existing =
            std::fs::read_to_string(path).doing(format_args!("failed to read {}", path.display()))?;
        if without_header(&existing) != without_header(&text) {
            console.error(&format!("rendered bundle differs from {}", path.display()));
            return Ok(DRIFT);
        }
        return Ok(OK);
    }
    match &args.output {
        Some(path) => std::fs::write(path, text).doing(format_args!("failed to write {}", path.display()))?,
        None => console.print(&text),
    }
    Ok(OK)
}

/// Removes the header, which is not compared, because pgroles' header differs.
fn without_header(text: &str) -> &str {
    let header = text
        .split_inclusive('\n')
        .take_while(|line| line.starts_with('#'))
        .map(str::len)
        .sum();
    text.get(header..).unwrap_or_default()
}

/// Names files without their folders, so that the text is the same on every machine.
fn header(args: &RenderBundleArgs, name: Name, bundle: &LoadedBundle) -> String {
    let file = args
        .bundle
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let command = match name {
        Name::Stanchion => "stanchion roles",
        Name::Pgroles => "pgroles",
    };
    let mut text = format!(
        "# Rendered by `{command} render-bundle`. Do not edit: render it again.\n# Source bundle: {file}\n# Fragments:\n"
    );
    for source in &bundle.sources {
        let name = source
            .document
            .policy
            .name
            .as_ref()
            .map(|name| format!(" ({name})"))
            .unwrap_or_default();
        let _ = writeln!(text, "#   - {}{name}", source.file);
    }
    text.push_str("#\n");
    text
}

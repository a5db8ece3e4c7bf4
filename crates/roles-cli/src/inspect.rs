//! `inspect`

use std::fmt::Write as _;

use super::args::{InspectArgs, SourceArgs};
use super::console::Console;
use super::database::connect;
use super::source::Source;
use super::{Failure, OK, While as _};
use stanchion_roles::facts::{Facts, RoleId};
use stanchion_roles::generate::generate;
use stanchion_roles::graph::ManagedScope;
use stanchion_roles::inspect::{Needs, inspect, inspect_everything};
use stanchion_roles::manifest::{Manifest, Strictness};
use stanchion_roles::model::{ObjectType, Privileges};

pub(super) async fn run(
    args: &InspectArgs,
    strictness: Strictness,
    console: &mut Console<'_>,
) -> Result<u8, Failure> {
    let source = if args.file.is_some() || args.bundle.is_some() {
        let source = SourceArgs {
            file: args.file.clone(),
            bundle: args.bundle.clone(),
        };
        Some(Source::read(&source, strictness, console)?)
    } else {
        None
    };
    let mut session = connect(&args.database, console).await?;
    let facts = match &source {
        Some(source) => {
            let mut needs = Needs::of(&source.desired);
            // The privileges of PUBLIC on the schema `public` are worth showing.
            needs.schemas.push("public".to_owned());
            inspect(&mut session, &needs).await
        }
        None => inspect_everything(&mut session).await,
    };
    let facts = facts.doing("failed to inspect database state")?;
    let mut text = String::new();
    if let Some(bundle) = source.as_ref().and_then(|source| source.bundle.as_ref()) {
        text.push_str(&scope_lines(&(&bundle.composed.scope).into()));
    }
    describe(&generate(&facts), &mut text);
    public(&facts, &mut text);
    console.print(&text);
    Ok(OK)
}

/// The scope of a bundle.
pub(super) fn scope_lines(scope: &ManagedScope) -> String {
    let mut text = format!(
        "Managed scope: {} role(s), {} schema(s)\n",
        scope.roles.len(),
        scope.schemas.len()
    );
    for (what, has) in [
        (
            "owner",
            (|schema| schema.owner) as fn(&stanchion_roles::graph::ManagedSchema) -> bool,
        ),
        ("bindings", |schema| schema.bindings),
    ] {
        let names: Vec<_> = scope
            .schemas
            .iter()
            .filter(|schema| has(schema))
            .map(|s| s.name.as_str())
            .collect();
        let _ = writeln!(
            text,
            "  {what} scope: {}",
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        );
    }
    text
}

fn describe(manifest: &Manifest, text: &mut String) {
    let _ = writeln!(text, "Roles: {}", manifest.roles.len());
    for role in &manifest.roles {
        let flags = [
            (role.login, "login"),
            (role.superuser, "superuser"),
            (role.createdb, "createdb"),
            (role.createrole, "createrole"),
            (role.replication, "replication"),
            (role.bypassrls, "bypassrls"),
        ];
        let mut traits: Vec<_> = flags
            .iter()
            .filter(|(on, _)| *on == Some(true))
            .map(|(_, name)| *name)
            .collect();
        if role.inherit == Some(false) {
            traits.push("noinherit");
        }
        let traits = if traits.is_empty() {
            String::new()
        } else {
            format!(" ({})", traits.join(", "))
        };
        let _ = writeln!(text, "  {}{traits}", role.name);
    }
    let _ = writeln!(text, "Grants: {}", manifest.grants.len());
    for grant in &manifest.grants {
        let place: Vec<_> = [&grant.object.schema, &grant.object.name]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let privileges: Privileges = grant.privileges.iter().copied().collect();
        let _ = writeln!(
            text,
            "  {privileges} on {} {} to {}",
            grant.object.kind,
            place.join("."),
            grant.role
        );
    }
    let _ = writeln!(
        text,
        "Default privileges: {}",
        manifest
            .default_privileges
            .iter()
            .map(|d| d.grant.len())
            .sum::<usize>()
    );
    for entry in &manifest.default_privileges {
        for grant in &entry.grant {
            let privileges: Privileges = grant.privileges.iter().copied().collect();
            let _ = writeln!(
                text,
                "  {privileges} on new {}s of {} in {} to {}",
                grant.on_type,
                entry.owner.as_deref().unwrap_or_default(),
                entry.schema.as_deref().unwrap_or("every schema"),
                grant.role.as_deref().unwrap_or_default()
            );
        }
    }
    let _ = writeln!(
        text,
        "Memberships: {}",
        manifest
            .memberships
            .iter()
            .map(|m| m.members.len())
            .sum::<usize>()
    );
    for membership in &manifest.memberships {
        for member in &membership.members {
            let _ = writeln!(text, "  {} in {}", member.name, membership.role);
        }
    }
}

/// The privileges of PUBLIC on the database and its schemas, which are not managed unless a rule names PUBLIC.
fn public(facts: &Facts, text: &mut String) {
    text.push_str("PUBLIC grants (managed only where a rule names PUBLIC):\n");
    for object in facts.objects.iter().filter(|object| object.column.is_none()) {
        let (held, _) = object.held_by(RoleId::PUBLIC);
        let _ = match object.kind {
            _ if held.is_empty() => Ok(()),
            ObjectType::Database => writeln!(text, "  Database: \"{}\": {held}", object.name),
            ObjectType::Schema => writeln!(text, "  Schema \"{}\": {held}", object.name),
            _ => Ok(()),
        };
    }
}

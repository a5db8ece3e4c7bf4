//! Finds grant options that roles hold beyond the manifest.

use super::Differ;
use crate::diff::{EXCLUDED_OPTION, UNDECLARED_OPTION};
use crate::facts::{AclEntry, Object, RoleId};
use crate::model::Privileges;
use crate::plan::Mode;

use super::surplus::described;

/// Grant options of a role beyond the rules.
#[derive(Default)]
pub(super) struct BeyondOption {
    /// To revoke.
    pub(super) unwanted: Privileges,
    /// Only reported.
    pub(super) undeclared: Privileges,
}

impl Differ<'_> {
    /// Warns of grant options that additive mode does not revoke.
    pub(super) fn warn_of_options(&mut self) {
        let view = self.view;
        for (place, object) in view.objects() {
            for entry in object.acl.iter().flatten() {
                let excluded = self.excluded_option(place, object, entry);
                self.warn_of_option(object, entry.grantee, excluded, EXCLUDED_OPTION);
                let undeclared = self.undeclared_option(place, object, entry);
                self.warn_of_option(object, entry.grantee, undeclared, UNDECLARED_OPTION);
            }
        }
    }

    /// Grant options to revoke and to report, without those of privileges that are revoked themselves. Authoritative mode
    /// revokes undeclared ones from managed roles.
    pub(super) fn beyond_option(&self, place: usize, object: &Object, entry: &AclEntry) -> BeyondOption {
        if entry.grantable.is_empty() {
            return BeyondOption::default();
        }
        let revoked = self.beyond(place, object, entry).unwanted;
        let excluded = self.excluded_option(place, object, entry).without(revoked);
        let undeclared = self.undeclared_option(place, object, entry).without(revoked);
        let managed = self.managed.get(&entry.grantee);
        let strict = self.mode == Mode::Authoritative
            && managed.is_some_and(|(_, role)| !role.preserve_undeclared_grants);
        if strict {
            BeyondOption {
                unwanted: excluded.union(undeclared),
                undeclared: Privileges::NONE,
            }
        } else {
            BeyondOption {
                unwanted: excluded,
                undeclared,
            }
        }
    }

    /// Privileges whose grant option the role holds, although the rules exclude it.
    fn excluded_option(&self, place: usize, object: &Object, entry: &AclEntry) -> Privileges {
        let want = self.want(place, object, entry.grantee);
        entry.grantable.intersection(want.not_grantable)
    }

    /// Declared privileges whose grant option the role holds, although the rules do not mention it.
    fn undeclared_option(&self, place: usize, object: &Object, entry: &AclEntry) -> Privileges {
        if entry.grantee == object.owner || entry.grantable.is_empty() {
            return Privileges::NONE;
        }
        let want = self.want(place, object, entry.grantee);
        let given = entry.grantable.intersection(want.present);
        given.without(want.grantable).without(want.not_grantable)
    }

    pub(super) fn warn_of_option(
        &mut self,
        object: &Object,
        role: RoleId,
        privileges: Privileges,
        reason: &str,
    ) {
        if privileges.is_empty() {
            return;
        }
        let text = format!(
            "role \"{}\" may pass {privileges} on {} on to others (WITH GRANT OPTION), {reason}",
            self.view.names.name(role),
            described(object)
        );
        if self.plan.warnings.last() != Some(&text) {
            self.plan.warnings.push(text);
        }
    }
}

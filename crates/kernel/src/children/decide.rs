//! Decides whether a child has to be written, from its cached summary.

use super::cache::Child;
use super::owned;
use crate::apply::Intent;
use crate::context::Parent;

/// What to do about one child.
#[derive(Clone, Debug, PartialEq)]
pub enum ChildChange {
    /// Nothing: it is as intended, or it is being deleted and the watch will report the end.
    Keep,
    /// Create it; an existing object with the name is read, and not changed.
    Create(Intent),
    /// Overwrite the known child.
    Write(Intent),
    /// Read and compare it: it may have been changed, or the server may only write a value in another form.
    Verify(Intent),
}

/// Decides about one child.
pub fn decide<Summary>(intent: Intent, child: Option<&Child<Summary>>, parent: &Parent) -> ChildChange {
    let Some(child) = child else {
        return ChildChange::Create(intent);
    };
    if child.owner != parent.uid {
        return ChildChange::Verify(intent);
    }
    if child.terminating {
        return ChildChange::Keep;
    }
    if child.intent.is_none() {
        // It belongs to the object and was not written by us: it is a predecessor's.
        return ChildChange::Verify(intent);
    }
    if child.intent.as_deref() != intent.hash() {
        return ChildChange::Write(intent.over(&child.uid));
    }
    let as_intended = child.owned == Some(owned::of_intent(intent.body()));
    if as_intended || (child.verified.is_some() && child.verified == child.owned) {
        ChildChange::Keep
    } else {
        ChildChange::Verify(intent)
    }
}

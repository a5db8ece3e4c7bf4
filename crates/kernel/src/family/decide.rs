//! Decides whether a child has to be written, from its cached summary.

use super::owned;
use super::store::Child;
use crate::apply::Intent;
use crate::context::Subject;

/// What to do about one child.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing: it is as intended, or it is being deleted and the watch will report the end.
    Keep,
    /// Create it; an existing object with the name is read, and not changed.
    Create(Intent),
    /// Overwrite the known child.
    Write(Intent),
    /// Read and compare it: it may have been changed, or the server may only write a value in another form.
    Look(Intent),
}

/// Decides about one child.
pub fn decide<Kept>(intent: Intent, child: Option<&Child<Kept>>, subject: &Subject) -> Step {
    let Some(child) = child else {
        return Step::Create(intent);
    };
    if child.owner != subject.uid {
        return Step::Look(intent);
    }
    if child.leaving {
        return Step::Keep;
    }
    if child.intent.is_none() {
        // It belongs to the object and was not written by us: it is a predecessor's.
        return Step::Look(intent);
    }
    if child.intent.as_deref() != intent.hash() {
        return Step::Write(intent.over(&child.uid));
    }
    let as_intended = child.owned == Some(owned::of_intent(intent.body()));
    if as_intended || (child.verified.is_some() && child.verified == child.owned) {
        Step::Keep
    } else {
        Step::Look(intent)
    }
}

//! Whether a child has to be written, from the line that is known of it.

use super::owned;
use super::store::Child;
use crate::apply::Intent;
use crate::context::Subject;

/// What to do about one child.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing: it is as intended, or it is leaving and its end will be told.
    Keep,
    /// Make it; whoever has the name already is not touched, but looked at.
    Create(Intent),
    /// Write it over the one that is known.
    Write(Intent),
    /// Look at it: it may have been changed, or it may only be written in another way.
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
        // It belongs to the object and was not written by us: a predecessor's.
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

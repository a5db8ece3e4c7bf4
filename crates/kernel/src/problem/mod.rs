//! What went wrong with one object, and how the kernel reacts.
//!
//! A step of a reconcile fails with a [`Problem`]. Its [`Class`] alone decides the rest: when the object is retried,
//! which phase and conditions its status has, whether an event is sent. The table is [`Class::reaction`].

mod kubernetes;
pub mod postgres;

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use kubernetes::is_terminating;
use stanchion_postgres::error::plain;

/// What has to change before a retry can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Nothing: a network error, a conflict, an overload. It passes by itself.
    Transient,
    /// An object that the spec refers to does not exist yet. Its creation wakes this object.
    Dependency,
    /// A person has to act outside of this object: a missing permission, an object in the way.
    Human,
    /// A person has to correct this object: the spec is invalid.
    Permanent,
}

/// When an object with a problem is retried without an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Soon, with increasing delays while it keeps failing.
    Backoff,
    /// After about this long, in case the watches miss something.
    After(Duration),
    /// Only when the object changes. The cleanup of an object that is being deleted is retried nevertheless.
    Never,
}

/// The kernel's reaction to a [`Class`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// When to retry.
    pub retry: Retry,
    /// Whether the object's phase is `Failed`. A transient problem does not set it: a user would act on it.
    pub failed: bool,
    /// kstatus: the operator is still working on it (`Reconciling`).
    pub reconciling: bool,
    /// kstatus: the object needs a person (`Stalled`).
    pub stalled: bool,
}

impl Class {
    /// The reaction to each class.
    pub const fn reaction(self) -> Reaction {
        const MINUTE: u64 = 60;
        match self {
            Self::Transient => Reaction {
                retry: Retry::Backoff,
                failed: false,
                reconciling: true,
                stalled: false,
            },
            Self::Dependency => Reaction {
                retry: Retry::After(Duration::from_secs(2 * MINUTE)),
                failed: true,
                reconciling: true,
                stalled: false,
            },
            Self::Human => Reaction {
                retry: Retry::After(Duration::from_secs(5 * MINUTE)),
                failed: true,
                reconciling: false,
                stalled: true,
            },
            Self::Permanent => Reaction {
                retry: Retry::Never,
                failed: true,
                reconciling: false,
                stalled: true,
            },
        }
    }

    /// The class as a metrics label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Dependency => "dependency",
            Self::Human => "human",
            Self::Permanent => "permanent",
        }
    }
}

/// What failed, where code decides by it. The reason is for people and their tools, and a controller may choose another
/// one; the cause stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// No code decides by it.
    #[default]
    Other,
    /// The object changed since it was read, or exists already.
    Conflict,
    /// The object does not exist.
    NotFound,
    /// The cluster does not serve the kind.
    KindMissing,
    /// The operator lacks a permission.
    Forbidden,
    /// A bug in the operator.
    Panic,
    /// Other changes of the database were first; nothing failed.
    DatabaseBusy,
    /// The server does not answer, or does not let the operator in.
    Unreachable,
    /// The server is refused: it is not verified, or its address is not allowed.
    ServerRefused,
    /// The server's answer is too large.
    AnswerTooLarge,
    /// The spec refers to an instance that does not exist, or that the namespace may not use.
    InstanceMissing,
    /// The Secret with the password is missing or invalid.
    PasswordSecret,
    /// The login lacks a privilege, or a role or a database does not exist.
    Privileges,
    /// The spec is invalid.
    InvalidSpec,
    /// Another object declares the same.
    Overlap,
    /// Roles cannot be dropped in their current state.
    UnsafeDrop,
    /// The database needs other changes by now.
    Superseded,
    /// A dependency of the object is not usable yet; the observed state says which.
    Blocked,
}

/// A failure of one object: its class, a CamelCase reason, and a message for a person.
///
/// The message says what happened, to which object, and what to do next. It appears in the status, events and logs, so
/// it never contains a secret; the source chain is only for the log.
#[derive(Clone)]
pub struct Problem {
    /// What has to change.
    pub class: Class,
    /// A stable CamelCase word: the reason of conditions and events, and a metrics label.
    pub reason: &'static str,
    /// The message for a person.
    pub message: String,
    /// What code decides by.
    pub cause: Cause,
    /// Overrides the class's retry, if the cause is known to pass sooner or later than usual.
    pub retry: Option<Retry>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Problem {
    /// A problem of the given class. The message may contain text of other operators, pods and servers, so it is
    /// shortened, and what a terminal or a log would act on is escaped.
    pub fn new(class: Class, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            class,
            reason,
            message: plain(&message.into()),
            cause: Cause::Other,
            retry: None,
            source: None,
        }
    }

    /// It passes by itself.
    pub fn transient(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Transient, reason, message)
    }

    /// An object that the spec refers to does not exist yet.
    pub fn dependency(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Dependency, reason, message)
    }

    /// A person has to act outside of the object.
    pub fn human(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Human, reason, message)
    }

    /// The spec is invalid.
    pub fn permanent(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Permanent, reason, message)
    }

    /// Keeps the cause for the log.
    #[must_use]
    pub fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Prefixes the message with the failed action: `cannot read password secret: …`.
    #[must_use]
    pub fn while_doing(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The same problem with another reason, if a controller's API defines one.
    #[must_use]
    pub fn with_reason(mut self, reason: &'static str) -> Self {
        self.reason = reason;
        self
    }

    /// The same problem with its cause, if code decides by it.
    #[must_use]
    pub fn with_cause(mut self, cause: Cause) -> Self {
        self.cause = cause;
        self
    }

    /// Whether this is the cause.
    pub fn is(&self, cause: Cause) -> bool {
        self.cause == cause
    }

    /// Retries at another time than the class defines.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// The reaction, including this problem's own retry.
    pub fn reaction(&self) -> Reaction {
        let table = self.class.reaction();
        Reaction {
            retry: self.retry.unwrap_or(table.retry),
            ..table
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{}: {}", self.class, self.reason, plain(&chain(self)))
    }
}

/// Does something that must not end everything else. `None` if it panics.
pub(crate) fn guarded<T>(step: &str, work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.inspect_err(|panic| log_panic(step, panic.as_ref())).ok()
}

/// Logs a panic that was caught. Its text may contain anything, so it goes nowhere else.
pub(crate) fn log_panic(step: &str, panic: &(dyn Any + Send)) {
    let text = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into());
    tracing::error!(step, panic = text, "the operator panicked");
}

/// An error with all its causes on one line, for a log.
pub fn chain(error: &dyn StdError) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Many errors repeat their cause in their own text.
        if !line.ends_with(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = error.source();
    }
    line
}

impl StdError for Problem {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in the documentation; a change here is a change of behaviour.
    #[test]
    fn the_reaction_table() {
        let rows = [
            Class::Transient,
            Class::Dependency,
            Class::Human,
            Class::Permanent,
        ]
        .map(|class| {
            let Reaction {
                retry,
                failed,
                reconciling,
                stalled,
            } = class.reaction();
            format!("{class:?}: {retry:?} failed={failed} reconciling={reconciling} stalled={stalled}")
        });
        insta::assert_snapshot!(rows.join("\n"), @r"
        Transient: Backoff failed=false reconciling=true stalled=false
        Dependency: After(120s) failed=true reconciling=true stalled=false
        Human: After(300s) failed=true reconciling=false stalled=true
        Permanent: Never failed=true reconciling=false stalled=true
        ");
    }

    #[test]
    fn the_cause_is_in_debug_and_not_in_the_message() {
        let problem = Problem::transient("X", "cannot connect").caused_by(std::io::Error::other("refused"));
        assert_eq!(problem.to_string(), "cannot connect");
        assert_eq!(format!("{problem:?}"), "Transient/X: cannot connect: refused");
    }

    #[test]
    fn what_others_say_is_one_line_and_short() {
        let said = format!("no\nERROR forged\u{1b}[2J{}", "x".repeat(100_000));
        let problem = Problem::transient("X", &said).caused_by(std::io::Error::other(said));
        for shown in [problem.to_string(), format!("{problem:?}")] {
            assert!(
                shown.len() < 5000 && !shown.contains(char::is_control),
                "{shown:?}"
            );
            assert!(shown.contains("no\\nERROR forged"));
        }
    }

    #[test]
    fn a_problem_may_choose_its_own_retry() {
        let problem = Problem::transient("LockBusy", "busy").with_retry(Retry::After(Duration::from_secs(1)));
        assert_eq!(problem.reaction().retry, Retry::After(Duration::from_secs(1)));
        assert!(problem.reaction().reconciling);
    }
}

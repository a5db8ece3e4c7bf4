//! Reasons of conditions that decide something in a later reconcile. The name of a variant is the reason.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use stanchion_api::supabase::condition;
use stanchion_kernel::condition::find;

macro_rules! reasons {
    ($(#[$about:meta])* $kind:ident of $condition:expr; $($(#[$what:meta])* $reason:ident,)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $kind {
            $($(#[$what])* $reason,)*
        }

        impl $kind {
            const ALL: &[Self] = &[$(Self::$reason,)*];

            /// The reason as it is in the condition.
            pub(crate) const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$reason => stringify!($reason),)*
                }
            }

            /// The reason of an earlier reconcile.
            pub(crate) fn before(conditions: &[Condition]) -> Option<Self> {
                let reason = find(conditions, $condition)?.reason.as_str();
                Self::ALL.iter().copied().find(|known| known.as_str() == reason)
            }
        }
    };
}

reasons! {
    /// The reasons of `Ready`.
    ReadyReason of condition::READY;
    /// Every component is ready.
    AllComponentsReady,
    /// Some components are rolling out.
    ComponentsNotReady,
    /// Some components need more than waiting.
    ComponentFailed,
    /// The spec is invalid.
    InvalidSpec,
    /// A Secret, the database or the bucket is missing or does not answer.
    DependencyValidationFailed,
    /// The Secret with the keys could not be written.
    SecretGenerationFailed,
    /// The database could not be prepared.
    DatabaseInitializationFailed,
    /// The children could not be written.
    ComponentDeploymentFailed,
}

reasons! {
    /// The reasons of `NetworkReady` while it is True.
    NetworkReason of condition::NETWORK_READY;
    /// There is an `HTTPRoute`. It is not watched, so a later reconcile has to know that one was created.
    RouteConfigured,
    /// There are only Services.
    ServicesConfigured,
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn a_reason_is_read_as_it_was_written() {
        let of = |reason: &str| {
            let condition = Condition {
                type_: condition::NETWORK_READY.into(),
                status: "True".into(),
                reason: reason.into(),
                message: String::new(),
                observed_generation: None,
                last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
            };
            NetworkReason::before(&[condition])
        };
        for reason in NetworkReason::ALL {
            assert_eq!(of(reason.as_str()), Some(*reason));
        }
        assert_eq!(of("NotOurs"), None, "the reason of a failure");
        assert_eq!(ReadyReason::before(&[]), None);
    }
}

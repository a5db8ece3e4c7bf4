//! Questions to the API server about its users: to whom a token belongs, and what a user may do.
//!
//! Everyone who reaches a port can cause them. So a caller has only a few open at the same time, and remembers the
//! answers for a while.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// The number of concurrent questions of one caller.
const QUESTIONS: usize = 4;
/// The number of answers that one [`Remembered`] keeps.
const REMEMBERED: usize = 256;

/// Asks a few questions at a time.
pub(crate) struct Reviews {
    pub(crate) client: Client,
    questions: Semaphore,
}

impl Reviews {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            questions: Semaphore::new(QUESTIONS),
        }
    }

    /// Waits until one more question may be asked. Nothing closes the semaphore.
    pub(crate) async fn question(&self) -> Option<SemaphorePermit<'_>> {
        self.questions.acquire().await.ok()
    }

    /// The owner of a token, if it is valid.
    pub(crate) async fn owner(&self, token: &str) -> kube::Result<Option<UserInfo>> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status;
        let status = status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }

    /// Whether a user may do what the spec names.
    pub(crate) async fn is_allowed(
        &self,
        user: UserInfo,
        what: SubjectAccessReviewSpec,
    ) -> kube::Result<bool> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                groups: user.groups,
                uid: user.uid,
                extra: user.extra,
                ..what
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

/// A few answers, each for a while. When it is full, further answers are not kept.
pub(crate) struct Remembered<K, V> {
    answers: Mutex<HashMap<K, (Instant, V)>>,
    ttl: Duration,
}

impl<K: Eq + Hash, V: Clone> Remembered<K, V> {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self {
            answers: Mutex::default(),
            ttl,
        }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.get_since(key, self.ttl)
    }

    /// An answer that is not older than this.
    pub(crate) fn get_since(&self, key: &K, age: Duration) -> Option<V> {
        let answers = self.answers.lock();
        let (since, value) = answers.get(key)?;
        (since.elapsed() <= age).then(|| value.clone())
    }

    /// Keeps an answer to a question that was asked at this time.
    pub(crate) fn put(&self, key: K, since: Instant, value: V) {
        let mut answers = self.answers.lock();
        answers.retain(|_, (since, _)| since.elapsed() < self.ttl);
        if answers.len() < REMEMBERED {
            answers.insert(key, (since, value));
        }
    }
}

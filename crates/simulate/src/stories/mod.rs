//! The stories that there are, each about one controller.

mod gitlab;
mod toy;

pub use gitlab::Gitlab;
pub use toy::Kernel;

use crate::story::Kind;

const SECRET: Kind = Kind {
    api_version: "v1",
    kind: "Secret",
    plural: "secrets",
};

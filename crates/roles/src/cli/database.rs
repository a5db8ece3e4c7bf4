//! Connecting.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use stanchion_postgres::{Session, Target, Timeouts};

use super::args::DatabaseArgs;
use super::{Failure, While as _};

/// Connects, or says at once why not.
pub(super) async fn connect(args: &DatabaseArgs) -> Result<Session, Failure> {
    let target = Target::parse(&SecretString::from(args.database_url.as_str()))
        .doing("failed to connect: the database URL is not valid")?
        .with_application_name("stanchion-roles");
    let timeouts = Timeouts {
        statement: Duration::from_secs(args.statement_timeout),
        lock: Duration::from_secs(args.lock_timeout),
        ..Timeouts::default()
    };
    Session::connect(&target, &timeouts, Arc::new(()))
        .await
        .doing("failed to connect")
}

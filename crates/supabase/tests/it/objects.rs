//! What is in the database afterwards, object by object.

use stanchion_testkit::postgres::versions;

use crate::bed::{Bed, full_request};
use crate::state;

/// The list to compare with what upstream's images contain; docs/supabase/database.md says where ours differs, and why.
#[tokio::test]
async fn every_version_gets_the_same_objects() {
    for version in versions() {
        let bed = Bed::new(version).await;
        bed.initialise(&full_request()).await.unwrap();
        insta::assert_snapshot!("objects", state::of(&bed).await);
    }
}

//! What is in the database afterwards, object by object.

use stanchion_postgres::{Session, Timeouts};
use stanchion_supabase::database;
use stanchion_testkit::postgres::versions;

use crate::bed::{Bed, full_request};

#[tokio::test]
async fn everything_is_there_and_stays_as_it_is() {
    for version in versions() {
        let bed = Bed::new(version).await;
        let outcome = bed.initialise(&full_request()).await.unwrap();
        assert!(!outcome.ran.is_empty());
        let skipped = bed
            .column("SELECT skipped FROM _stanchion.steps WHERE skipped IS NOT NULL")
            .await;
        assert!(skipped.is_empty(), "{skipped:?}");
        let again = bed.initialise(&full_request()).await.unwrap();
        assert_eq!(again.ran, Vec::<&str>::new());
        let session = Session::connect(&bed.target(), &Timeouts::default(), std::sync::Arc::new(()))
            .await
            .unwrap();
        let inspected = database::inspect(&session, &full_request()).await.unwrap();
        assert_eq!(inspected, Some(again));
    }
}

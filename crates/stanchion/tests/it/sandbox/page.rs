//! The page of the demo: its address is the first line.

use stanchion_testkit::process::Signal;
use stanchion_testkit::wait;

use super::directory::Place;
use crate::DEADLINE;
use crate::page::{enter, get};

#[tokio::test]
async fn the_first_line_of_the_demo_is_the_address_of_the_page() {
    let place = Place::new();
    let sandbox = place.start(&["--controllers=user"]);
    sandbox.says("never for production").await;
    let first = sandbox.line(&[]);
    let address = first.strip_prefix("Open ").unwrap_or_else(|| panic!("{first}"));
    let cookie = enter(address).await;
    let fleet = address.split_once("?token").unwrap().0;
    wait::eventually(DEADLINE, "the example to be ready on the page", async || {
        let answer = get(&format!("{fleet}?state=Ready"), &cookie).await;
        if answer.contains("/o/postgresusers/default/alice") {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
    // An open page does not delay the end.
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));
    place.is_clean().await;
}

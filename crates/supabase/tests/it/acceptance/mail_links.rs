//! The links in Auth's mails, made by Auth itself.

use http::{Method, StatusCode};
use serde_json::json;
use stanchion_testkit::port;

use super::kong::{Kong, Verdict, With};
use super::shop;
use crate::auth;
use crate::service_process::Service;

/// Each link leads through the gateway without a key to the part of Auth that accepts it.
#[tokio::test]
async fn the_links_of_auth_itself_are_accepted_behind_the_gateway() {
    let Some(program) = auth::program() else { return };
    let public = "https://shop.example.com";
    let (env, _operator, _) = shop(json!({ "studio": { "publicUrl": public } })).await;
    let (pod, kong) = (env.pod("shop-auth").await, Kong::of(&env).await);
    let port = port::free();
    let here = [
        ("GOTRUE_API_HOST", "127.0.0.1"),
        ("GOTRUE_API_PORT", &port.to_string()),
    ];
    let auth = Service::of(&program, &[], &pod, &here, port).await;
    let service = env.values("shop-jwt").await.remove("service-role-key").unwrap();
    for kind in ["signup", "invite", "recovery", "magiclink"] {
        // A link for recovery or login needs a user, and the others must not have one.
        let user = match kind {
            "signup" | "recovery" => "ann@example.com",
            _ => "bob@example.com",
        };
        let asked = json!({ "type": kind, "email": user, "password": "correct horse" });
        let (status, answer) = auth
            .send(Method::POST, "/admin/generate_link", Some(&service), Some(&asked))
            .await;
        assert_eq!(status, StatusCode::OK, "{kind}: {answer}");
        let link = answer["action_link"].as_str().unwrap();
        let path = link
            .strip_prefix(public)
            .unwrap_or_else(|| panic!("{kind}: {link}"));
        let (path, query) = path.split_once('?').unwrap();
        let to = Verdict::To("http://shop-auth:9999/verify".to_owned());
        assert_eq!(kong.ask(path, With::Nothing), to, "{kind}: {link}");

        let path = format!("/verify?{query}");
        let answer = auth.exchange(Method::GET, &path, &[], "").await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{kind}: {answer:?}");
        let location = answer.headers()["location"].to_str().unwrap();
        assert!(location.contains("#access_token="), "{kind}: {location}");
    }
}

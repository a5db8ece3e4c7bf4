//! Who may use the page.

use crate::test_env::TestEnv;

#[tokio::test]
async fn only_the_token_opens_the_page() {
    let env = TestEnv::new("ui-token").await;
    let browser = env.open().await;
    let mut stranger = env.open().await;
    stranger.cookie.clear();
    let refused = stranger.get("/", &[]).await;
    assert_eq!(refused.status, 401);
    assert!(refused.text.contains("The token is missing"), "{}", refused.text);
    assert!(!refused.text.contains(&env.namespace), "{}", refused.text);
    // The token of another page is of no use.
    assert_eq!(stranger.get(&browser.entrance(), &[]).await.status, 401);
    assert_eq!(stranger.get("/live", &[]).await.status, 401);

    let entered = stranger.get(&stranger.entrance(), &[]).await;
    let cookie = entered.headers["set-cookie"].to_str().unwrap();
    for words in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(words), "{cookie}");
    }
    let token = stranger.entrance();
    let token = token.split_once("token=").unwrap().1;
    assert!(!cookie.contains(token), "the cookie is another secret");
    assert!(!entered.text.contains(token), "the next address has no token");
    assert_eq!(browser.get("/", &[]).await.status, 200);
}

#[tokio::test]
async fn another_name_for_loopback_is_refused() {
    let env = TestEnv::new("ui-host").await;
    let browser = env.open().await;
    let port = browser.origin.rsplit_once(':').unwrap().1;
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        browser.origin.replace("http://", "").replace(port, "1"),
    ] {
        let page = browser.get("/", &[("host", &host)]).await;
        assert_eq!(page.status, 421, "{host}");
        assert!(!page.text.contains(&env.namespace), "{}", page.text);
        // The token does not help, and no cookie is set for that name.
        let page = browser.get(&browser.entrance(), &[("host", &host)]).await;
        assert_eq!(page.status, 421, "{host}");
        assert!(!page.headers.contains_key("set-cookie"), "{host}");
    }
}

#[tokio::test]
async fn every_answer_has_the_headers() {
    let env = TestEnv::new("ui-headers").await;
    let browser = env.open().await;
    for path in [
        "/",
        "/nothing",
        "/assets/page.js",
        "/assets/style.css",
        "/o/secrets/a/b",
    ] {
        let page = browser.get(path, &[]).await;
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(page.headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(page.headers["x-frame-options"], "DENY", "{path}");
        assert!(page.headers.contains_key("cache-control"), "{path}");
    }
    let page = browser.get("/", &[]).await;
    assert_eq!(page.headers["cache-control"], "no-store");
    for inline in [" style=", "<style", " onclick", "javascript:"] {
        assert!(!page.text.contains(inline), "{inline}: {}", page.text);
    }
}

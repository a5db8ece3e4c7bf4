use stanchion_testkit::http_proxy::HttpProxy;

use super::*;

/// A server that repeats what it gets, and a proxy that knows it as `files.example.test`.
async fn echo(name: &str) -> HttpProxy {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    HttpProxy::start(&[(name, address)]).await
}

fn in_pod() -> AllowedNetworks {
    AllowedNetworks::in_pod(Vec::new(), Vec::new())
}

fn through(proxy: &str, networks: AllowedNetworks) -> Connector {
    Connector::new(
        networks,
        Matcher::builder()
            .all(proxy.to_owned())
            .no("direct.example.test")
            .build(),
    )
}

async fn call(connector: &Connector, uri: &str) -> io::Result<Stream> {
    connector.clone().call(uri.parse().unwrap()).await
}

fn why<E: std::error::Error + 'static>(error: &io::Error) -> Option<&E> {
    error.get_ref()?.downcast_ref()
}

#[tokio::test]
async fn a_server_is_reached_through_the_proxy_which_resolves_its_name() {
    let proxy = echo("files.example.test:443").await;
    let connector = through(&proxy.url_of("ann", "pass word"), in_pod());
    let stream = call(&connector, "https://files.example.test/x").await.unwrap();
    assert!(!stream.connected().is_proxied());
    let mut stream = stream.io.into_inner();
    stream.write_all(b"hello").await.unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"hello");
    let [asked] = proxy.requests().try_into().unwrap();
    assert!(
        asked.starts_with("CONNECT files.example.test:443 HTTP/1.1\r\n"),
        "{asked}"
    );
    // ann:pass word
    assert!(
        asked.contains("Proxy-Authorization: Basic YW5uOnBhc3Mgd29yZA=="),
        "{asked}"
    );
}

/// Plain requests go to the proxy itself, with its password.
#[tokio::test]
async fn a_proxy_gets_plain_requests_itself() {
    let proxy = echo("files.example.test:80").await;
    let connector = through(&proxy.url_of("ann", "pass word"), in_pod());
    let uri = "http://files.example.test/x";
    let stream = call(&connector, uri).await.unwrap();
    assert!(stream.connected().is_proxied());
    let authorization = |uri: &str| connector.authorization(&uri.parse().unwrap());
    assert_eq!(authorization(uri).unwrap(), "Basic YW5uOnBhc3Mgd29yZA==");
    assert_eq!(authorization("https://files.example.test/x"), None);
    assert_eq!(authorization("http://direct.example.test/x"), None);
}

/// The proxy is not asked for what the operator itself would not connect to; `--allow-network` allows it.
#[tokio::test]
async fn no_proxy_leads_around_the_allowed_networks() {
    let proxy = echo("169.254.169.254:443").await;
    let closed = through(&proxy.url(), in_pod());
    for server in [
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "127.0.0.1",
        "localhost",
        "[::1]",
        "0.0.0.0",
    ] {
        for scheme in ["https", "http"] {
            let error = call(&closed, &format!("{scheme}://{server}/")).await.unwrap_err();
            assert!(
                matches!(why(&error), Some(ConnectError::Closed)),
                "{scheme} {server}: {error}"
            );
        }
    }
    assert_eq!(proxy.requests(), Vec::<String>::new());
    let open = AllowedNetworks::in_pod(vec!["169.254.0.0/16".parse().unwrap()], Vec::new());
    call(&through(&proxy.url(), open), "https://169.254.169.254/")
        .await
        .unwrap();
    assert_eq!(proxy.requests().len(), 1);
}

/// `NO_PROXY`, and the machine itself, are reached directly; the same check applies.
#[tokio::test]
async fn some_servers_are_reached_directly() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap();
    let proxy = echo(&here.to_string()).await;
    let connector = through(&proxy.url(), AllowedNetworks::everything());
    call(&connector, &format!("https://{here}/")).await.unwrap();
    // It is in no DNS, so the connection fails; the proxy would have answered.
    let error = call(&connector, "https://direct.example.test/")
        .await
        .unwrap_err();
    assert!(why::<ProxyError>(&error).is_none(), "{error}");
    assert_eq!(proxy.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_proxy_that_fails_is_named_without_its_password() {
    let proxy = echo("files.example.test:443").await;
    let refusing = through(&proxy.url_of("ann", "secret-word"), in_pod());
    let error = call(&refusing, "https://other.example.test/").await.unwrap_err();
    assert!(
        matches!(why(&error), Some(ProxyError::Refused(_, _, code)) if code == "403"),
        "{error}"
    );
    let gone = format!(
        "http://ann:secret-word@127.0.0.1:{}",
        stanchion_testkit::port::free()
    );
    let error = call(&through(&gone, in_pod()), "https://files.example.test/")
        .await
        .unwrap_err();
    assert!(
        matches!(why(&error), Some(ProxyError::Unreachable(..))),
        "{error}"
    );
    let socks = through("socks5://ann:secret-word@127.0.0.1:1", in_pod());
    let error = call(&socks, "https://files.example.test/").await.unwrap_err();
    assert!(matches!(why(&error), Some(ProxyError::Unsupported(_))), "{error}");
    assert!(!error.to_string().contains("secret-word"), "{error}");
}

#[test]
fn only_a_code_of_an_answer_is_used() {
    assert_eq!(status(b"HTTP/1.1 200 OK\r\n\r\n").as_deref(), Some("200"));
    assert_eq!(
        status(b"HTTP/1.0 407 Who are you?\r\nA: b\r\n\r\n").as_deref(),
        Some("407")
    );
    for no in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\n",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 2\x1b\x1b\r\n\r\n",
        b"\r\n\r\n",
    ] {
        assert_eq!(status(no), None);
    }
}

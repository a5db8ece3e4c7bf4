//! Signed clients can store and read objects.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle};
use stanchion_testkit::s3::S3;

const VALID_FOR: Duration = Duration::from_mins(1);

fn bucket(s3: &S3) -> Bucket {
    let endpoint = s3.endpoint().parse().unwrap();
    Bucket::new(endpoint, UrlStyle::Path, s3.bucket().to_owned(), S3::REGION).unwrap()
}

/// `ListObjectsV2` is a GET of the bucket itself; the client's own action needs an XML parser.
fn list_url(bucket: &Bucket, who: Option<&Credentials>) -> String {
    let mut list = bucket.get_object(who, "");
    list.query_mut().insert("list-type", "2");
    list.sign(VALID_FOR).to_string()
}

async fn send(method: Method, url: &str, body: &'static str) -> (StatusCode, String) {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let request = Request::builder()
        .method(method)
        .uri(url)
        .body(Full::new(Bytes::from_static(body.as_bytes())));
    let answer = client.request(request.unwrap()).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn signed_requests_put_get_list_and_delete() {
    let s3 = S3::start().await;
    let bucket = bucket(&s3);
    let credentials = Credentials::new(s3.access_key(), s3.secret_key());
    let who = Some(&credentials);
    let (status, _) = send(
        Method::PUT,
        bucket.put_object(who, "a/b.txt").sign(VALID_FOR).as_str(),
        "content",
    )
    .await;
    assert_eq!(status, 200);
    assert_eq!(std::fs::read_to_string(s3.file("a/b.txt")).unwrap(), "content");
    let (status, body) = send(
        Method::GET,
        bucket.get_object(who, "a/b.txt").sign(VALID_FOR).as_str(),
        "",
    )
    .await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "content"));
    let (status, body) = send(Method::GET, &list_url(&bucket, who), "").await;
    assert_eq!(status, 200);
    assert!(body.contains("<Key>a/b.txt</Key>"), "{body}");
    let (status, _) = send(Method::HEAD, bucket.head_bucket(who).sign(VALID_FOR).as_str(), "").await;
    assert_eq!(status, 200);
    let (status, _) = send(
        Method::DELETE,
        bucket.delete_object(who, "a/b.txt").sign(VALID_FOR).as_str(),
        "",
    )
    .await;
    assert!(status.is_success());
    assert!(!s3.file("a/b.txt").exists());
}

#[tokio::test]
async fn others_are_refused() {
    let s3 = S3::start().await;
    let bucket = bucket(&s3);
    for credentials in [
        Credentials::new(s3.access_key(), "wrong"),
        Credentials::new("nobody", s3.secret_key()),
    ] {
        let url = list_url(&bucket, Some(&credentials));
        let (status, body) = send(Method::GET, &url, "").await;
        assert_eq!(status, 403, "{body}");
    }
    let (status, _) = send(Method::GET, &list_url(&bucket, None), "").await;
    assert_eq!(status, 403);
}

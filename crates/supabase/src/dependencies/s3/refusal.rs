//! Explains the errors of S3 servers.

use http::StatusCode;
use stanchion_kernel::Class;

use super::transport::Answer;

/// A row: S3's error code, and its meaning here.
struct Refusal(&'static str, Class, &'static str, &'static str);

/// The error codes. S3-compatible servers use the same ones.
const REFUSALS: &[Refusal] = &[
    Refusal(
        "NoSuchBucket",
        Class::Dependency,
        "BucketNotFound",
        "there is no such bucket",
    ),
    Refusal(
        "InvalidBucketName",
        Class::Permanent,
        "BucketNotFound",
        "no bucket can have this name",
    ),
    Refusal(
        "InvalidAccessKeyId",
        Class::Dependency,
        "AccessKeyUnknown",
        "the access key is unknown there; check accessKeyId",
    ),
    Refusal(
        "NotSignedUp",
        Class::Dependency,
        "AccessKeyUnknown",
        "the access key is unknown there; check accessKeyId",
    ),
    Refusal(
        "SignatureDoesNotMatch",
        Class::Dependency,
        "SecretKeyWrong",
        "the signature does not fit; check secretAccessKey",
    ),
    Refusal(
        "AccessDenied",
        Class::Human,
        "AccessDenied",
        "the access key may not list it",
    ),
    Refusal(
        "AllAccessDisabled",
        Class::Human,
        "AccessDenied",
        "all access to it is disabled",
    ),
    Refusal(
        "RequestTimeTooSkewed",
        Class::Human,
        "ClockSkewed",
        "its clock and this one differ too much",
    ),
];

/// The error codes of a bucket in another region.
const WRONG_REGIONS: &[(&str, &str)] = &[
    (
        "AuthorizationHeaderMalformed",
        "requests must be signed for another region",
    ),
    (
        "AuthorizationQueryParametersError",
        "requests must be signed for another region",
    ),
    ("PermanentRedirect", "the bucket is in another region"),
    (
        "IllegalLocationConstraintException",
        "the bucket is in another region",
    ),
];

/// Transient error codes: only these are repeated in messages.
const PASSING: &[&str] = &[
    "InternalError",
    "OperationAborted",
    "RequestTimeout",
    "ServiceUnavailable",
    "SlowDown",
];

/// Regions are short words; any other text in their place is not repeated.
fn is_region(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&text.len()) && text.bytes().all(plain)
}

const WRONG_REGION: &str = "WrongRegion";

/// The class, a reason, and what to check.
pub(super) fn explain(answer: &Answer, region: &str) -> (Class, &'static str, String) {
    let code = answer.element("Code").unwrap_or_default();
    let named = answer.region.as_deref().or_else(|| answer.element("Region"));
    let elsewhere = named.filter(|named| *named != region && is_region(named));
    if let Some(Refusal(_, class, reason, what)) = REFUSALS.iter().find(|row| row.0 == code) {
        return (*class, *reason, (*what).to_owned());
    }
    if let Some((_, what)) = WRONG_REGIONS.iter().find(|row| row.0 == code) {
        let place = match elsewhere {
            Some(named) => format!(": {named}, not {region}"),
            None => format!(" than {region}"),
        };
        return (Class::Human, WRONG_REGION, format!("{what}{place}"));
    }
    if let Some(named) = elsewhere {
        let what = format!("the bucket is in another region: {named}, not {region}");
        return (Class::Human, WRONG_REGION, what);
    }
    // Nothing of the body: the endpoint may be any service that the operator can reach and the user cannot.
    let code = PASSING.iter().find(|known| **known == code);
    let said = match code {
        Some(code) => format!("it answers {} {code}", answer.status),
        None => format!("it answers {}", answer.status),
    };
    match answer.status {
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => (Class::Human, "AccessDenied", said),
        StatusCode::TOO_MANY_REQUESTS => (Class::Transient, "Unavailable", said),
        status if status.is_server_error() => (Class::Transient, "Unavailable", said),
        _ => {
            let what = format!("{said}, which is not S3's; is the endpoint that of another service?");
            (Class::Human, "NotS3", what)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str, region: Option<&str>) -> (&'static str, String) {
        let answer = Answer {
            status: StatusCode::from_u16(status).unwrap(),
            region: region.map(str::to_owned),
            body: body.to_owned(),
        };
        let (_, reason, what) = explain(&answer, "eu-central-1");
        (reason, what)
    }

    #[test]
    fn a_region_is_named_where_the_server_names_it() {
        let malformed =
            "<Error><Code>AuthorizationQueryParametersError</Code><Region>us-west-2</Region></Error>";
        assert_eq!(
            answer(400, malformed, None).1,
            "requests must be signed for another region: us-west-2, not eu-central-1"
        );
        let redirect = "<Error><Code>PermanentRedirect</Code></Error>";
        assert_eq!(answer(301, redirect, Some("us-west-2")).0, "WrongRegion");
        assert_eq!(
            answer(301, redirect, None).1,
            "the bucket is in another region than eu-central-1"
        );
        assert_eq!(answer(301, "", Some("us-west-2")).0, "WrongRegion");
        assert_eq!(answer(403, "", Some("eu-central-1")).0, "AccessDenied");
    }

    #[test]
    fn nothing_of_a_body_is_repeated_but_known_codes() {
        assert_eq!(
            answer(503, "<Error><Code>SlowDown</Code></Error>", None),
            (
                "Unavailable",
                "it answers 503 Service Unavailable SlowDown".to_owned()
            )
        );
        let secret =
            "<Error><Code>token-of-a-metadata-service</Code><Region>AKIA\u{1b}SECRET</Region></Error>";
        for status in [200, 301, 403, 404, 500] {
            let (_, what) = answer(status, secret, Some("SECRET KEY"));
            assert!(!what.contains("token") && !what.contains("SECRET"), "{what}");
        }
        assert_eq!(answer(200, "<html>", None).0, "NotS3");
        assert_eq!(answer(404, "", None).0, "NotS3");
    }
}

//! The media types of the Kubernetes API, and content negotiation.

use http::HeaderMap;

use crate::error::ApiError;

/// The format of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Yaml,
    Table,
    Metadata,
}

impl Form {
    /// The first of the accepted media types that can be served.
    pub(crate) fn negotiate(headers: &HeaderMap) -> Result<Self, ApiError> {
        let accept = headers
            .get("accept")
            .and_then(|value| value.to_str().ok())
            .unwrap_or("*/*");
        accept
            .split(',')
            .find_map(Self::of)
            .ok_or_else(ApiError::not_acceptable)
    }

    fn of(media: &str) -> Option<Self> {
        let mut parts = media.split(';').map(str::trim);
        let kind = parts.next()?;
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let parameter = |key: &str| {
            parameters
                .iter()
                .find(|(known, _)| *known == key)
                .map(|(_, value)| *value)
        };
        match (kind, parameter("as")) {
            ("application/json" | "application/*" | "*/*" | "", None) => Some(Self::Json),
            ("application/yaml", None) => Some(Self::Yaml),
            ("application/json", Some("Table")) if parameter("v") == Some("v1") => Some(Self::Table),
            ("application/json", Some("PartialObjectMetadata" | "PartialObjectMetadataList"))
                if parameter("v") == Some("v1") =>
            {
                Some(Self::Metadata)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_servable_media_type_wins() {
        let form = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("accept", accept.parse().unwrap());
            Form::negotiate(&headers)
        };
        assert_eq!(
            form("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").unwrap(),
            Form::Table
        );
        assert_eq!(
            form("application/vnd.kubernetes.protobuf,application/json").unwrap(),
            Form::Json
        );
        assert_eq!(
            form("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").unwrap(),
            Form::Metadata
        );
        assert_eq!(form("text/plain").unwrap_err().code, 406);
    }
}

//! Storage: files in the bucket, their names and permissions in the database.

use stanchion_api::supabase::image;

use super::kong::routes::{Guard, route};
use super::{Component, Environment, Extras, Needs, Port, Probes, Project, Resources};
use crate::database::Login;
use crate::keys::names as key;

pub(super) const COMPONENT: Component = Component {
    name: "storage",
    field: "storageApi",
    label: "storage-api",
    condition: "StorageReady",
    options: |spec| Some(&spec.storage_api.options),
    image: image::STORAGE,
    ports: &[Port::service("http", 5000)],
    open: false,
    resources: Resources::new(("256Mi", "100m"), ("512Mi", "500m")),
    user: 1000,
    probes: |_| Probes::http("http", "/status", 120),
    logins: &[Login::Storage],
    keys: &[],
    routes: &[route("storage-v1", "/", "/storage/v1/", Guard::Own)],
    needs: |_| Needs::default(),
    environment,
    extras: |_| Extras::default(),
};

fn environment(project: &Project<'_>, env: &mut Environment) {
    let (keys, bucket) = (project.key_secret(), project.bucket);
    env.secret("ANON_KEY", &keys, key::ANON);
    env.secret("SERVICE_KEY", &keys, key::SERVICE);
    env.secret("AUTH_JWT_SECRET", &keys, key::JWT_SECRET);
    env.secret("JWT_JWKS", &keys, key::STORAGE_JWKS);
    env.secret("DB_PASSWORD", &keys, key::password(Login::Storage));
    // Its driver verifies a certificate unless the URL disables that. TLS parameters of the URL replace Storage's own,
    // so the URL names the authority, too; Storage's own setting would not verify a server that is named by address.
    let ca = project.ca_file().filter(|_| project.encrypts());
    let mut parameters = vec![("sslmode", project.node_ssl_mode("no-verify"))];
    parameters.extend(ca.as_deref().map(|file| ("sslrootcert", file)));
    env.expanded("DATABASE_URL", project.database_url(Login::Storage, &parameters));
    env.set(
        "DATABASE_MAX_CONNECTIONS",
        project.spec.database.max_connections.to_string(),
    );
    env.set(
        "POSTGREST_URL",
        format!("http://{}:3000", project.host("postgrest")),
    );
    // Resumable uploads continue at this URL. Without it Storage uses the URL of the request.
    if let Some(url) = project.stated_url() {
        env.set("STORAGE_PUBLIC_URL", url);
    }
    env.set_all(&[
        ("DB_INSTALL_ROLES", "false"),
        ("REQUEST_ALLOW_X_FORWARDED_PATH", "true"),
        ("FILE_SIZE_LIMIT", "52428800"),
        ("TENANT_ID", "stub"),
        ("STORAGE_BACKEND", "s3"),
    ]);
    env.set("GLOBAL_S3_BUCKET", bucket.name.clone());
    env.set("GLOBAL_S3_ENDPOINT", bucket.endpoint.clone());
    env.set(
        "GLOBAL_S3_FORCE_PATH_STYLE",
        project.spec.storage.force_path_style.to_string(),
    );
    for variable in ["REGION", "STORAGE_S3_REGION", "AWS_DEFAULT_REGION"] {
        env.set(variable, bucket.region.clone());
    }
    env.secret("AWS_ACCESS_KEY_ID", &bucket.secret, "accessKeyId");
    env.secret("AWS_SECRET_ACCESS_KEY", &bucket.secret, "secretAccessKey");
    env.secret("S3_PROTOCOL_ACCESS_KEY_ID", &keys, key::S3_PROTOCOL_ID);
    env.secret("S3_PROTOCOL_ACCESS_KEY_SECRET", &keys, key::S3_PROTOCOL_SECRET);
    let images = project.spec.imgproxy.is_some();
    env.set("ENABLE_IMAGE_TRANSFORMATION", images.to_string());
    if images {
        env.set(
            "IMGPROXY_URL",
            format!("http://{}:5001", project.host("imgproxy")),
        );
    }
}

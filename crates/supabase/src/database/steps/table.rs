//! The table of steps, in the order of execution.

use super::{Need, Place, Step, When};
use crate::database::isolation::Thing;
use crate::database::roles::Login;

use Need::Optional;

const STEP: Step = Step {
    number: 0,
    name: "",
    place: Place::Project,
    need: Need::Required,
    when: When::Always,
    touches: &[],
    run_as: None,
    sql: "",
    settings: &[],
};

const EXTENSION: &str = include_str!("0030_extension.sql");
const INTERNAL_SCHEMA: &str = include_str!("1010_internal_schema.sql");
const INTERNAL_HANDOVER: &str = include_str!("1020_internal_handover.sql");

/// The schemas of the services.
const SCHEMAS: &[Thing] = &[
    Thing::schema("extensions"),
    Thing::schema("graphql_public"),
    Thing::schema("auth"),
    Thing::schema("storage"),
    Thing::schema("realtime"),
    Thing::schema("_realtime"),
    Thing::schema("supabase_functions"),
];

const EXTENSION_SCHEMAS: &[Thing] = &[
    Thing::schema("extensions"),
    Thing::schema("cron"),
    Thing::schema("net"),
    Thing::schema("graphql"),
    Thing::schema("vault"),
];

/// A step that creates an extension.
macro_rules! extension {
    ($number:literal, $name:literal, $need:expr, $schema:literal) => {
        Step {
            number: $number,
            name: concat!("extension ", $name),
            need: $need,
            when: When::Available($name),
            touches: EXTENSION_SCHEMAS,
            sql: EXTENSION,
            settings: &[
                ("stanchion.extension", $name),
                ("stanchion.extension_schema", $schema),
            ],
            ..STEP
        }
    };
}

/// Required extensions; they are part of PostgreSQL's contrib.
pub(in crate::database) const REQUIRED_EXTENSIONS: &[&str] = &["pgcrypto", "uuid-ossp", "pg_stat_statements"];

/// The table, in the order of execution.
pub(in crate::database) const TABLE: &[Step] = &[
    Step {
        number: 10,
        name: "memberships",
        sql: include_str!("0010_memberships.sql"),
        ..STEP
    },
    Step {
        number: 11,
        name: "predefined memberships",
        need: Optional("Studio cannot see the statements of other sessions, nor end them"),
        sql: include_str!("0011_predefined_memberships.sql"),
        ..STEP
    },
    Step {
        number: 20,
        name: "schemas",
        touches: SCHEMAS,
        sql: include_str!("0020_schemas.sql"),
        ..STEP
    },
    Step {
        number: 21,
        name: "handover",
        sql: include_str!("0021_handover.sql"),
        ..STEP
    },
    Step {
        // Step 22 read a table that could have any owner.
        number: 23,
        name: "history of auth",
        touches: &[Thing::schema("auth"), Thing::table("auth", "schema_migrations")],
        sql: include_str!("0023_auth_history.sql"),
        ..STEP
    },
    extension!(30, "pgcrypto", Need::Required, "extensions"),
    extension!(31, "uuid-ossp", Need::Required, "extensions"),
    extension!(
        32,
        "pg_stat_statements",
        Optional("Studio has no figures about queries"),
        "extensions"
    ),
    Step {
        number: 40,
        name: "functions of auth",
        touches: &[
            Thing::schema("auth"),
            Thing::routine("auth", "uid"),
            Thing::routine("auth", "role"),
            Thing::routine("auth", "email"),
            Thing::routine("auth", "jwt"),
        ],
        run_as: Some(Login::Auth),
        sql: include_str!("0040_auth_functions.sql"),
        ..STEP
    },
    Step {
        number: 50,
        name: "grants",
        touches: SCHEMAS,
        sql: include_str!("0050_schema_grants.sql"),
        ..STEP
    },
    Step {
        number: 51,
        name: "default privileges",
        touches: SCHEMAS,
        sql: include_str!("0051_default_privileges.sql"),
        ..STEP
    },
    Step {
        number: 52,
        name: "who may connect",
        sql: include_str!("0052_connect.sql"),
        ..STEP
    },
    Step {
        number: 60,
        name: "settings of roles",
        sql: include_str!("0060_settings.sql"),
        ..STEP
    },
    Step {
        number: 70,
        name: "publication",
        sql: include_str!("0070_publication.sql"),
        ..STEP
    },
    Step {
        number: 71,
        name: "parameter of realtime",
        need: Optional("Realtime cannot follow changes of tables"),
        sql: include_str!("0071_realtime_parameter.sql"),
        ..STEP
    },
    Step {
        number: 80,
        name: "schema reload",
        need: Optional("after a change of the schema, run NOTIFY pgrst, 'reload schema'"),
        touches: &[
            Thing::schema("extensions"),
            Thing::routine("extensions", "pgrst_ddl_watch").ours(),
            Thing::routine("extensions", "pgrst_drop_watch").ours(),
        ],
        sql: include_str!("0080_schema_reload.sql"),
        ..STEP
    },
    Step {
        number: 81,
        name: "access to extensions",
        need: Optional("pg_cron, pg_net and pg_graphql can be used by their owner only"),
        touches: EXTENSION_SCHEMAS,
        sql: include_str!("0081_extension_access.sql"),
        ..STEP
    },
    Step {
        number: 82,
        name: "triggers for extensions",
        need: Optional(
            "an extension that is created later must be opened by hand: SELECT _stanchion.open_extension(NAME)",
        ),
        touches: &[
            Thing::schema("extensions"),
            Thing::routine("extensions", "grant_pg_cron_access").ours(),
            Thing::routine("extensions", "grant_pg_net_access").ours(),
            Thing::routine("extensions", "grant_pg_graphql_access").ours(),
        ],
        sql: include_str!("0082_extension_triggers.sql"),
        ..STEP
    },
    Step {
        number: 90,
        name: "graphql",
        touches: &[
            Thing::schema("graphql_public"),
            Thing::routine("graphql_public", "graphql"),
        ],
        sql: include_str!("0090_graphql.sql"),
        ..STEP
    },
    // After the triggers, which open them.
    extension!(
        91,
        "pg_net",
        Optional("database webhooks do not work"),
        "extensions"
    ),
    extension!(
        92,
        "pgjwt",
        Optional("SQL functions for signing tokens are missing"),
        "extensions"
    ),
    extension!(
        93,
        "pg_graphql",
        Optional("the GraphQL API answers that it is not enabled"),
        ""
    ),
    extension!(
        94,
        "supabase_vault",
        Optional("secrets cannot be kept in the database"),
        ""
    ),
    Step {
        number: 100,
        name: "webhooks",
        touches: &[
            Thing::schema("supabase_functions"),
            Thing::table("supabase_functions", "migrations"),
            Thing::table("supabase_functions", "hooks"),
            Thing::routine("supabase_functions", "http_request"),
        ],
        run_as: Some(Login::Functions),
        sql: include_str!("0100_webhooks.sql"),
        ..STEP
    },
    Step {
        // Step 110 called a function that could have any owner.
        number: 111,
        name: "pooler",
        need: Optional("nobody can log in through the pooler"),
        when: When::Login(Login::PoolerAuth),
        touches: &[
            Thing::schema("pgbouncer"),
            Thing::routine("pgbouncer", "get_auth").ours(),
        ],
        sql: include_str!("0111_pooler.sql"),
        ..STEP
    },
    Step {
        number: 1010,
        name: "schema of analytics",
        place: Place::Internal,
        when: When::Login(Login::Analytics),
        touches: &[Thing::schema("_analytics")],
        sql: INTERNAL_SCHEMA,
        settings: &[
            ("stanchion.schema", "_analytics"),
            ("stanchion.schema_owner", Login::Analytics.setting()),
        ],
        ..STEP
    },
    Step {
        number: 1011,
        name: "schema of the pooler",
        place: Place::Internal,
        when: When::Login(Login::Pooler),
        touches: &[Thing::schema("_supavisor")],
        sql: INTERNAL_SCHEMA,
        settings: &[
            ("stanchion.schema", "_supavisor"),
            ("stanchion.schema_owner", Login::Pooler.setting()),
        ],
        ..STEP
    },
    Step {
        number: 1020,
        name: "objects of analytics",
        place: Place::Internal,
        when: When::Login(Login::Analytics),
        touches: &[Thing::schema("_analytics")],
        sql: INTERNAL_HANDOVER,
        settings: &[
            ("stanchion.schema", "_analytics"),
            ("stanchion.schema_owner", Login::Analytics.setting()),
        ],
        ..STEP
    },
    Step {
        number: 1021,
        name: "objects of the pooler",
        place: Place::Internal,
        when: When::Login(Login::Pooler),
        touches: &[Thing::schema("_supavisor")],
        sql: INTERNAL_HANDOVER,
        settings: &[
            ("stanchion.schema", "_supavisor"),
            ("stanchion.schema_owner", Login::Pooler.setting()),
        ],
        ..STEP
    },
];

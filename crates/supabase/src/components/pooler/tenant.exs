# Writes the project down as the pooler's tenant: made where it is missing, changed where it differs. Every start runs it.
{:ok, _} = Application.ensure_all_started(:supavisor)

id = System.fetch_env!("POOLER_TENANT_ID")
pool_size = System.fetch_env!("POOLER_DEFAULT_POOL_SIZE")
%{rows: [[version]]} = Supavisor.Repo.query!("select version()")
{:ok, version} = Supavisor.Helpers.parse_pg_version(version)
present = Supavisor.Tenants.get_tenant_by_external_id(id)

# Who asks for the verifiers of those who log in. One that is there is changed and not made a second time.
manager =
  Enum.reduce(
    (present && present.users) || [],
    %{
      "db_user" => System.fetch_env!("POOLER_USER"),
      "db_password" => System.fetch_env!("POOLER_PASSWORD"),
      "mode_type" => System.fetch_env!("POOLER_POOL_MODE"),
      "pool_size" => pool_size,
      "is_manager" => true
    },
    fn user, manager -> if user.is_manager, do: Map.put(manager, "id", user.id), else: manager end
  )

# The certificate authority itself is named by GLOBAL_UPSTREAM_CA_PATH.
upstream =
  case System.fetch_env!("POOLER_UPSTREAM_VERIFY") do
    "" -> %{"upstream_ssl" => false, "upstream_verify" => nil}
    verify -> %{"upstream_ssl" => true, "upstream_verify" => verify}
  end

tenant =
  Map.merge(upstream, %{
    "external_id" => id,
    "db_host" => System.fetch_env!("POSTGRES_HOST"),
    "db_port" => System.fetch_env!("POSTGRES_PORT"),
    "db_database" => System.fetch_env!("POSTGRES_DB"),
    "ip_version" => "auto",
    "require_user" => false,
    "auth_query" => "SELECT * FROM pgbouncer.get_auth($1)",
    "default_max_clients" => System.fetch_env!("POOLER_MAX_CLIENT_CONN"),
    "default_pool_size" => pool_size,
    "default_parameter_status" => %{"server_version" => version},
    "users" => [manager]
  })

{:ok, _} =
  if present,
    do: Supavisor.Tenants.update_tenant(present, tenant),
    else: Supavisor.Tenants.create_tenant(tenant)

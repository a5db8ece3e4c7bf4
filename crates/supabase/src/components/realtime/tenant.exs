# Registers the project as Realtime's tenant and prepares its database, through encrypted connections from the first one.
# Every start runs this: the keys and the password may have changed.
{:ok, _} = Application.ensure_all_started(:realtime)

id = System.fetch_env!("SELF_HOST_TENANT_NAME")

# New values are encrypted with the newer cipher already; this flag has the older ones follow. Older images lack it.
{:module, _} = Code.ensure_loaded(Realtime.Api)

if function_exported?(Realtime.Api, :upsert_feature_flag, 1) do
  {:ok, _} = Realtime.Api.upsert_feature_flag(%{name: "gcm_encryption_backfill", enabled: true})
end

settings = %{
  "db_host" => System.fetch_env!("DB_HOST"),
  "db_port" => System.fetch_env!("DB_PORT"),
  "db_name" => System.fetch_env!("DB_NAME"),
  "db_user" => System.fetch_env!("DB_USER"),
  "db_password" => System.fetch_env!("DB_PASSWORD"),
  "region" => "us-east-1",
  "poll_interval_ms" => 100,
  "poll_max_record_bytes" => 1_048_576,
  "ssl_enforced" => true
}

tenant = %{
  "external_id" => id,
  "name" => id,
  "jwt_secret" => System.fetch_env!("API_JWT_SECRET"),
  "jwt_jwks" => Jason.decode!(System.fetch_env!("API_JWT_JWKS")),
  "extensions" => [%{"type" => "postgres_cdc_rls", "settings" => settings}]
}

# In one transaction, so that other pods never miss the tenant.
{:ok, _} =
  Realtime.Repo.transaction(fn ->
    present = Realtime.Repo.get_by(Realtime.Api.Tenant, external_id: id)
    if present, do: Realtime.Repo.delete!(present)
    Realtime.Repo.insert!(Realtime.Api.Tenant.changeset(%Realtime.Api.Tenant{}, tenant))
  end)

# A database that does not answer now is prepared with the first connection of a client.
prepared =
  with registered when not is_nil(registered) <- Realtime.Tenants.get_tenant_by_external_id(id),
       done when done in [:ok, :noop] <- Realtime.Tenants.Migrations.run_migrations(registered) do
    Realtime.Tenants.Janitor.MaintenanceTask.run(id)
  end

if prepared != :ok, do: IO.puts(:stderr, "the tenant's database is not prepared yet: #{inspect(prepared)}")

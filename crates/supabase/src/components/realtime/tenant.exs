# The tenant that was just written down shall be served through encrypted connections. Every start runs this, because
# every start writes the tenant anew.
{:ok, _} = Application.ensure_all_started(:realtime)

tenant = System.fetch_env!("SELF_HOST_TENANT_NAME")

encrypt = """
UPDATE _realtime.extensions SET settings = jsonb_set(settings, '{ssl_enforced}', 'true')
WHERE tenant_external_id = $1 AND type = 'postgres_cdc_rls'
"""

%{num_rows: 1} = Realtime.Repo.query!(encrypt, [tenant])

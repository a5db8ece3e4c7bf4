# Writes the values of the environment into the configuration where it names them, and starts Kong.
# A value is escaped for the double quotes that it stands in.
set -eu
umask 077
awk '
function escaped(value) {
  gsub(/\\/, "&&", value)
  gsub(/"/, "\\\\&", value)
  return value
}
{
  line = $0
  while (match(line, /\$\{[A-Z0-9_]+\}/)) {
    printf "%s%s", substr(line, 1, RSTART - 1), escaped(ENVIRON[substr(line, RSTART + 2, RLENGTH - 3)])
    line = substr(line, RSTART + RLENGTH)
  }
  print line
}
' /etc/kong/kong.yml >"$KONG_DECLARATIVE_CONFIG"
exec /entrypoint.sh kong docker-start

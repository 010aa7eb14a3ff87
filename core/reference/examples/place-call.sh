# place-call.sh CAMPAIGN ORDER PHONE
umask 077
headers=$(mktemp) && answer=$(mktemp) || exit 1
trap 'rm -f "$headers" "$answer"' EXIT
printf 'X-API-Key: %s\nContent-Type: application/json\nIdempotency-Key: order-%s\n' "$CALLKEY_API_KEY" "$2" > "$headers"
status=$(curl --silent --show-error --retry 8 --retry-all-errors --retry-max-time 60 --connect-timeout 5 --max-time 10 \
  --header @"$headers" --data "{\"contact\":{\"phone\":\"$3\"}}" --output "$answer" --write-out '%{http_code}' \
  "$CALLKEY_SERVER/api/v1/campaigns/$1/contacts/on-demand")
cat "$answer"
[ "$status" = 202 ]

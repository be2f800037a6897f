#!/bin/sh
# Ask a tacit server from a shell: SERVER=http://127.0.0.1:8484 TOKEN=tacit_... TABLE=survey sh server.sh
set -eu
api() { curl -sS --fail-with-body --noproxy '*' -H "Authorization: Bearer $TOKEN" "$@"; }

question='{"releases": [{"kind": "count", "by": "region"}], "spend": {"epsilon": 0.1}}'
path="$SERVER/api/v1/tables/$TABLE"
api -H "Content-Type: application/json" -d "$question" "$path/preview" | grep -o '"price":"[^"]*"'
job=$(api -H "Content-Type: application/json" -d "$question" "$path/release" | sed 's/.*"job":"\([^"]*\)".*/\1/')
i=0
until api "$SERVER/api/v1/jobs/$job" | grep -q '"state":"\(done\|refused\|failed\|lost\|cancelled\|stopped\)"'; do
    i=$((i + 1)); [ "$i" -lt 300 ] || exit 1
    sleep 0.5
done
api "$SERVER/api/v1/jobs/$job/answer"

#!/bin/sh
# For compose.yaml: creates the core's role, which isn't a superuser, and its database. psql reads the password itself, so `ps` doesn't show it.
set -eu
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="${POSTGRES_USER:-postgres}" --dbname=postgres <<'SQL'
\set password `cat "${CALLKEY_PASSWORD_FILE:-/run/secrets/postgres-password}"`
CREATE ROLE callkey LOGIN PASSWORD :'password';
CREATE DATABASE callkey OWNER callkey;
SQL

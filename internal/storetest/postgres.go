package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"testing"

	// The driver named "pgx".
	_ "github.com/jackc/pgx/v5/stdlib"
)

// PostgresVariable names the environment variable with the URL of a Postgres database for tests. The script postgres.sh
// starts a server and prints one.
const PostgresVariable = "DRAWBRIDGE_TEST_POSTGRES"

// PostgresSchema returns the URL of an empty schema of the database for tests, which goes when the test ends. Where
// there is no such database it skips the test.
func PostgresSchema(t testing.TB) string {
	t.Helper()
	base := os.Getenv(PostgresVariable)
	if base == "" {
		t.Skip("no Postgres for tests: " + PostgresVariable + " is not set (internal/storetest/postgres.sh)")
	}
	location, err := url.Parse(base)
	if err != nil {
		t.Fatal(PostgresVariable, "is no URL")
	}
	schema := "drawbridge_test_" + rand.Text()
	executeSQL(t.Context(), t, base, `CREATE SCHEMA "`+schema+`"`)
	t.Cleanup(func() { executeSQL(context.WithoutCancel(t.Context()), t, base, `DROP SCHEMA "`+schema+`" CASCADE`) })
	query := location.Query()
	query.Set("search_path", `"`+schema+`"`)
	location.RawQuery = query.Encode()
	return location.String()
}

func executeSQL(ctx context.Context, t testing.TB, location, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", location)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Fatal(err)
	}
}

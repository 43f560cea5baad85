package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"testing"

	// The import registers the database/sql driver "pgx".
	_ "github.com/jackc/pgx/v5/stdlib"
)

// PostgresVariable is the environment variable that contains the URL of a Postgres database for tests. The script
// postgres.sh starts a server and prints its URL.
const PostgresVariable = "DRAWBRIDGE_TEST_POSTGRES"

// PostgresSchema creates an empty schema in the Postgres database for tests and returns its URL. The schema is
// dropped when the test ends. If PostgresVariable is not set, the test is skipped.
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

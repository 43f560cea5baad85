package store_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestPlain connects to a port that nobody listens at: what comes of several attempts is said once, in one line.
func TestPlain(t *testing.T) {
	pool, _, err := store.OpenPostgresPool("postgres://u:hunter2@127.0.0.1:1/db", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	err = fmt.Errorf("open: %w", pool.PingContext(t.Context()))
	plain := store.FlattenConnectError(err)
	text := plain.Error()
	if strings.ContainsAny(text, "\n\t") || strings.Count(text, "dial error") != 1 || strings.Contains(text,
		"hunter2") || !strings.HasPrefix(text, "open: ") {
		t.Errorf("%q of %q", text, err)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](plain); !ok {
		t.Error("the cause is lost")
	}
	if got := store.FlattenConnectError(io.EOF); got != io.EOF {
		t.Error(got)
	}
}

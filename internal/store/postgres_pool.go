package store

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgresConnectTimeout is the time limit of a connection attempt if the URL sets none.
const postgresConnectTimeout = 10 * time.Second

// OpenPostgresPool returns a pool of at most most connections to a server, of which idle ones stay open, and the name
// of the place for people. It does not connect yet. The error is for an invalid URL.
func OpenPostgresPool(location string, most, idle int) (pool *sql.DB, name string, err error) {
	config, err := pgx.ParseConfig(location)
	if err != nil {
		return nil, "", errors.New("the postgres:// URL is not valid") // the cause may quote it, password and all
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = postgresConnectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "drawbridge"
	}
	pool = stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(idle)
	host := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	return pool, fmt.Sprintf("postgres://%s/%s", host, config.Database), nil
}

// PostgresPlace returns the parts of a URL that determine its tables, without the password and other parameters. An
// invalid URL is returned unchanged.
func PostgresPlace(location string) string {
	config, err := pgx.ParseConfig(location)
	if err != nil {
		return location
	}
	host := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	return strings.Join([]string{host, config.Database, config.User, config.RuntimeParams["search_path"],
		config.RuntimeParams["options"]}, "\x00")
}

// FlattenConnectError returns a connection error, which has a line for each attempt, as one line; equal attempts are
// named once. Other errors are returned unchanged.
func FlattenConnectError(err error) error {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); !ok {
		return err
	}
	var said []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	return flatError{strings.ReplaceAll(strings.Join(said, "; "), ":; ", ": "), err}
}

// A flatError replaces the text of an error.
type flatError struct {
	text  string
	cause error
}

func (p flatError) Error() string { return p.text }
func (p flatError) Unwrap() error { return p.cause }

// postgresCode returns the SQLSTATE of the server's answer; empty if it did not answer.
func postgresCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

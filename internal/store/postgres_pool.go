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

// postgresConnectTimeout is the time limit for a connection attempt if the URL does not set a limit.
const postgresConnectTimeout = 10 * time.Second

// OpenPostgresPool returns a pool of connections to a Postgres server. most is the maximum number of connections, and
// idle is the maximum number of unused connections that stay open. name is the address of the database without the
// password, for messages. The function does not connect; the first statement does. It returns an error for an invalid
// URL.
func OpenPostgresPool(location string, most, idle int) (pool *sql.DB, name string, err error) {
	config, err := pgx.ParseConfig(location)
	if err != nil {
		return nil, "", errors.New("the postgres:// URL is not valid") // the cause may quote the URL with its password
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

// PostgresPlace returns a key that is the same for all URLs that select the same tables. The key contains the host,
// port, database, user, and the parameters search_path and options. It does not contain the password. An invalid URL
// is returned unchanged.
func PostgresPlace(location string) string {
	config, err := pgx.ParseConfig(location)
	if err != nil {
		return location
	}
	host := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	return strings.Join([]string{host, config.Database, config.User, config.RuntimeParams["search_path"],
		config.RuntimeParams["options"]}, "\x00")
}

// FlattenConnectError returns a connection error with its text on a single line. The original text has one line for
// each connection attempt; equal lines appear only once in the result. Other errors are returned unchanged.
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

// A flatError is an error with its own text instead of the text of its cause.
type flatError struct {
	text  string
	cause error
}

func (p flatError) Error() string { return p.text }
func (p flatError) Unwrap() error { return p.cause }

// postgresCode returns the SQLSTATE of an error that the server returned; empty for other errors.
func postgresCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

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

// postgresConnectTimeout is how long a connection may take where the URL does not say.
const postgresConnectTimeout = 10 * time.Second

// OpenPostgresPool gives at most so many connections to a server, of which idle ones stay when nobody needs them, and
// the name of the place for people. It connects to nothing yet. The error is that the URL is none.
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

// FlattenConnectError gives an error of a connection, which has a line for each attempt, in one line: attempts that
// came to the same are named once. Other errors stay as they are.
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

// A flatError error says the same in other words.
type flatError struct {
	text  string
	cause error
}

func (p flatError) Error() string { return p.text }
func (p flatError) Unwrap() error { return p.cause }

// postgresCode gives the SQLSTATE that the server answered; empty where it did not answer.
func postgresCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

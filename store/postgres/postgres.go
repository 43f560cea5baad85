// Package postgres connects to a Postgres server.
//
// It promises that nothing of the URL is in an error, since it may have a password; that a server which does not answer is given
// up after a while; and that people on the server see who is connected.
package postgres

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

// connectTimeout is how long a connection may take where the URL does not say.
const connectTimeout = 10 * time.Second

// Open gives at most so many connections to a server, of which idle ones stay when nobody needs them, and the name of the place for
// people. It connects to nothing yet. The error is that the URL is none.
func Open(location string, most, idle int) (pool *sql.DB, name string, err error) {
	config, err := pgx.ParseConfig(location)
	if err != nil {
		return nil, "", errors.New("the postgres:// URL is not valid") // the cause may quote it, password and all
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
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

// Plain gives an error of a connection, which has a line for each attempt, in one line: attempts that came to the same are named
// once. Other errors stay as they are.
func Plain(err error) error {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); !ok {
		return err
	}
	var said []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	return plain{strings.ReplaceAll(strings.Join(said, "; "), ":; ", ": "), err}
}

// A plain error says the same in other words.
type plain struct {
	text  string
	cause error
}

func (p plain) Error() string { return p.text }
func (p plain) Unwrap() error { return p.cause }

// Code gives the SQLSTATE that the server answered; empty where it did not answer.
func Code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

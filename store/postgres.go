package store

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// connections is how many connections to a server a store has at most; spare is how many it keeps when idle.
const (
	connections = 8
	spare       = 2
)

// connectTimeout is how long a connection may take where the URL does not say.
const connectTimeout = 10 * time.Second

func postgresDialect() dialect {
	return dialect{
		words: strings.NewReplacer("CLOCK", "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", "BLOB", "BYTEA"),
		// Any number that no other program on the server is likely to have: it reads "drawbrdg".
		lock:    "SELECT pg_advisory_xact_lock(7237970079022706791)",
		fault:   postgresFault,
		noTable: func(err error) bool { return postgresCode(err) == "42P01" },
		// Without the server's answer nobody knows what it did.
		undecided: func(err error) bool { return postgresCode(err) == "" },
	}
}

func openPostgres(location string) (*DB, error) {
	config, err := pgx.ParseConfig(location)
	if err != nil {
		// The cause may quote the URL, password and all.
		return nil, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "open the store",
			Err: errors.New("the postgres:// URL is not valid"), Next: "write postgres://user:password@host:5432/database",
		}
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "drawbridge"
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(spare)
	host := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	return &DB{
		name: fmt.Sprintf("postgres://%s/%s", host, config.Database), dialect: postgresDialect(), writer: pool, reader: pool, counts: pool,
	}, nil
}

// postgresCode gives the SQLSTATE that the server answered; empty where it did not answer.
func postgresCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

func postgresFault(err error) (code drawbridge.FaultCode, next string) {
	state := postgresCode(err)
	class := state[:min(2, len(state))]
	switch {
	case class == "28" || state == "42501":
		return drawbridge.AuthFailure, "check user, password and rights in the URL"
	case state == "3D000":
		return drawbridge.InvalidInput, "make the database first"
	case class == "" || class == "08" || class == "40" || class == "53" || class == "57":
		return drawbridge.Transient, "see that the server runs and can be reached"
	}
	return drawbridge.ServerError, ""
}

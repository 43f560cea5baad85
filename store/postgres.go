package store

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/store/postgres"
)

// connections is how many connections to a server a store has at most; spare is how many it keeps when idle.
const (
	connections = 8
	spare       = 2
)

func postgresDialect() dialect {
	return dialect{
		words: strings.NewReplacer("CLOCK", "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", "BLOB", "BYTEA"),
		// Any number that no other program on the server is likely to have: it reads "drawbrdg".
		lock:    "SELECT pg_advisory_xact_lock(7237970079022706791)",
		fault:   postgresFault,
		noTable: func(err error) bool { return postgres.Code(err) == "42P01" },
		// Without the server's answer nobody knows what it did.
		undecided: func(err error) bool { return postgres.Code(err) == "" },
	}
}

func openPostgres(location string) (*DB, error) {
	pool, name, err := postgres.Open(location, connections, spare)
	if err != nil {
		return nil, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "open the store",
			Err: err, Next: "write postgres://user:password@host:5432/database",
		}
	}
	return &DB{name: name, dialect: postgresDialect(), writer: pool, reader: pool, counts: pool}, nil
}

func postgresFault(err error) (code drawbridge.FaultCode, next string) {
	state := postgres.Code(err)
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

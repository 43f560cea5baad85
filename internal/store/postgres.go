package store

import (
	"database/sql"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// storeConnections is the maximum number of connections to a server. storeIdleConnections is the maximum number of
// idle connections that stay open.
const (
	storeConnections     = 8
	storeIdleConnections = 2
)

func postgresDialect() dialect {
	return dialect{
		keywords: strings.NewReplacer("CLOCK", "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
			"BLOB", "BYTEA"),
		// An arbitrary lock number that other programs on the server are unlikely to use: its bytes spell
		// "drawbrdg".
		lock: "SELECT pg_advisory_xact_lock(7237970079022706791)",
		// The second number tells workspaces in other schemas apart.
		writeLock:      "SELECT pg_advisory_xact_lock(1685221232, hashtext(current_schema()))",
		skipLocked:     " FOR UPDATE SKIP LOCKED",
		snapshot:       &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		fault:          postgresFault,
		isMissingTable: func(err error) bool { return postgresCode(err) == "42P01" },
		// If the server did not answer, the outcome is unknown.
		isCommitUnknown: func(err error) bool { return postgresCode(err) == "" },
	}
}

func openPostgres(location string) (*DB, error) {
	pool, name, err := OpenPostgresPool(location, storeConnections, storeIdleConnections)
	if err != nil {
		return nil, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "open the store",
			Err: err, Next: "write postgres://user:password@host:5432/database",
		}
	}
	return &DB{name: name, dialect: postgresDialect(), writer: pool, reader: pool, counters: pool}, nil
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

package config

import (
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// AuditSettings configures the records kept of calls. The zero value of a field means its default.
type AuditSettings struct {
	// Enabled false keeps nothing; nil means the default.
	Enabled *bool
	// Arguments is the form in which a call's arguments are recorded: "redacted", "hash" or "full".
	Arguments string
	// Sync is when a record is on the disk: "batch" or "always".
	Sync string
	// Retention is how long records are kept, below 0 for ever; KeepRecords is how many.
	Retention  time.Duration
	MaxRecords int
	// KeyFile is the absolute path of the file with the key that signs; empty means that of the vault.
	KeyFile string
}

// auditSettingTable are the members of [audit].
var auditSettingTable = []setting{
	{"audit", "enabled", "boolean", "true",
		"keeps a record of each call; what cannot be recorded is not sent",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.Audit.Enabled, v) }},
	{"audit", "arguments", `"redacted", "hash" or "full"`, "redacted",
		"what is kept of arguments: all but what looks like a secret, their SHA-256 only, or all",
		func(r *settingsReader, v configfile.Node) error {
			return readOneOf(&r.settings.Audit.Arguments, v, "redacted", "hash", "full")
		}},
	{"audit", "sync", `"batch" or "always"`, "batch",
		"batch outlives our own death at any point; always has each call wait for the disk, and outlives the machine's too",
		func(r *settingsReader, v configfile.Node) error {
			return readOneOf(&r.settings.Audit.Sync, v, "batch", "always")
		}},
	{"audit", "keep", `time, or "never" to forget`, "2160h",
		"how long records are kept",
		func(r *settingsReader, v configfile.Node) error {
			return readDurationOrNever(&r.settings.Audit.Retention, v)
		}},
	{"audit", "keep_records", "whole number", "1000000",
		"how many records are kept; a call has two",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveInt(&r.settings.Audit.MaxRecords, v)
		}},
	{"audit", "key_file", "path", "",
		"the file with the Ed25519 key that signs (PKCS #8, PEM), in the place of one in the vault; variables are put in",
		func(r *settingsReader, v configfile.Node) error { return r.readPath(&r.settings.Audit.KeyFile, v) }},
}

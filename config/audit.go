package config

import (
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// AuditSettings configures the audit log, in which Drawbridge records each call. The zero value of a field means its
// default.
type AuditSettings struct {
	// Enabled controls whether calls are recorded; nil means the default.
	Enabled *bool
	// Arguments selects how the arguments of a call are stored: "redacted" (without values that look like secrets),
	// "hash" (only their SHA-256) or "full".
	Arguments string
	// Sync is "batch" or "always". With "always", each call waits until its record is on the disk. With "batch", a call
	// does not wait, and a crash of the machine may lose the latest records.
	Sync string
	// Retention is how long records are stored; a negative value means forever. MaxRecords is the maximum number of
	// stored records.
	Retention  time.Duration
	MaxRecords int
	// MaxBytes is the maximum size of the stored records in bytes; 0 means 768 MiB.
	MaxBytes int64
	// KeyFile is the absolute path of the file with the Ed25519 key that signs the audit log; empty means the key in
	// the vault.
	KeyFile string
}

// auditSettingTable contains the settings in [audit].
var auditSettingTable = []setting{
	{"audit", "enabled", "boolean", "true",
		"records each call; a call that cannot be recorded is not sent",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.Audit.Enabled, v) }},
	{"audit", "arguments", `"redacted", "hash" or "full"`, "redacted",
		"how arguments are stored: without values that look like secrets, only their SHA-256, or complete",
		func(r *settingsReader, v configfile.Node) error {
			return readOneOf(&r.settings.Audit.Arguments, v, "redacted", "hash", "full")
		}},
	{"audit", "sync", `"batch" or "always"`, "batch",
		"batch survives a crash of Drawbridge at any point; always also survives a crash of the machine, and makes each call wait for the disk",
		func(r *settingsReader, v configfile.Node) error {
			return readOneOf(&r.settings.Audit.Sync, v, "batch", "always")
		}},
	{"audit", "keep", `time, or "never" to keep them for ever`, "2160h",
		"how long records are kept",
		func(r *settingsReader, v configfile.Node) error {
			return readDurationOrNever(&r.settings.Audit.Retention, v)
		}},
	{"audit", "keep_records", "whole number", "1000000",
		"the maximum number of records; a call has one or two",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveInt(&r.settings.Audit.MaxRecords, v)
		}},
	{"audit", "keep_bytes", "bytes", "805306368",
		"the maximum size of the records in the store, compressed as they are there",
		func(r *settingsReader, v configfile.Node) error {
			return readByteCount(&r.settings.Audit.MaxBytes, v)
		}},
	{"audit", "key_file", "path", "",
		"the file with the Ed25519 signing key (PKCS #8, PEM), in place of the key in the vault; variables are expanded",
		func(r *settingsReader, v configfile.Node) error { return r.readPath(&r.settings.Audit.KeyFile, v) }},
}

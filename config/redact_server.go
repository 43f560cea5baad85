package config

import (
	"encoding/json"
)

// PlaintextSecrets returns names for the values of a row, as written, that look like secrets in plain text. Examples
// are "env GITHUB_TOKEN", "header Authorization", "args --api-key", "url key", "auth client_secret". References to
// variables, and commands, are not secrets. The result is a guess from names and known prefixes. It never contains a
// value.
func PlaintextSecrets(row json.RawMessage) []string { return findPlaintextSecrets(row) }

// RedactedCommandLine returns a description of the row in one line: the program and its arguments, or the url, as
// written. Variables are not expanded, and possible secrets are replaced by "…".
func (s Server) RedactedCommandLine() string { return redactedCommandLine(s.Raw) }

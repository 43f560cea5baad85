package config

import (
	"encoding/json"
)

// PlaintextSecrets names the values of a row, as written, that look like secrets in plain text: "env GITHUB_TOKEN",
// "header Authorization", "args --api-key", "url key", "auth client_secret". References to variables and commands are
// not secrets. It is a guess by names and known prefixes; the result never contains a value.
func PlaintextSecrets(row json.RawMessage) []string { return findPlaintextSecrets(row) }

// RedactedCommandLine returns one line for the row: the program and its arguments, or the url, as written. Variables
// are not expanded, and possible secrets are "…".
func (s Server) RedactedCommandLine() string { return redactedCommandLine(s.Raw) }

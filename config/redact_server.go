package config

import (
	"encoding/json"
)

// PlaintextSecrets names the values of a row, as it is written, that look like secrets and stand there in plain text:
// "env GITHUB_TOKEN", "header Authorization", "args --api-key", "url key", "auth client_secret". References to
// variables and commands are none. It is a guess, by names and by well-known beginnings; no value is ever part of what
// it gives.
func PlaintextSecrets(row json.RawMessage) []string { return findPlaintextSecrets(row) }

// RedactedCommandLine shows on one line what the row stands for: the program and its arguments, or the url, as they
// are written. Variables are not put in, and what looks like a secret is "…".
func (s Server) RedactedCommandLine() string { return redactedCommandLine(s.Raw) }

package config

import (
	"encoding/json"
)

// PlaintextSecrets returns a name for each value of a row that looks like a secret in plain text. Examples of names are
// "env GITHUB_TOKEN", "header Authorization", "args --api-key", "url key", "auth client_secret". row is the row as
// written, such as Server.Raw. References and commands are not secrets. The result is a guess from the names and
// prefixes of values, and contains no value.
func PlaintextSecrets(row json.RawMessage) []string { return findPlaintextSecrets(row) }

// RedactedCommandLine returns a description of the row in one line: the program and its arguments, or the url, as
// written. Variables are not expanded, and possible secrets are replaced by "…".
func (s Server) RedactedCommandLine() string { return redactedCommandLine(s.Raw) }

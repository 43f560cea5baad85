package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// secretName matches names that usually belong to secrets, by the end of the name. Examples are variables, headers,
// flags and parameters such as GITHUB_TOKEN, X-Api-Key and --password.
var secretName = lazyregexp.New(
	`(?i)(^|[^a-z])(token|secret|passwd|password|passphrase|pass|auth|authorization|credentials?|cookie|pat|pwd|(api|access|private|secret|auth|service|account|role|encryption|signing)[-_.]?key|apikey|key)$|(?i)(token|secret|password|apikey)$`)

// secretValue matches values that begin with a known prefix of secrets. Such a value is a secret whatever its name is.
var secretValue = lazyregexp.New(
	`^(gh[pousr]_|github_pat_|glpat-|sk-[A-Za-z0-9]|sk_live_|rk_live_|xox[abprs]-|xapp-|AKIA[0-9A-Z]{12}|AIza|eyJ[A-Za-z0-9_-]{10}|npm_[A-Za-z0-9]{20}|hf_[A-Za-z0-9]{16}|ya29\.|-----BEGIN |(?i:bearer|basic|token) +[^ $])`)

// envVariableName matches a value that is the name of an environment variable in upper case.
var envVariableName = lazyregexp.New(`^[A-Z_][A-Z0-9_]*$`)

// findPlaintextSecrets returns a name for each value of a row that looks like a secret in plain text. Examples of names
// are "env GITHUB_TOKEN", "header Authorization", "args --api-key", "url key", "auth client_secret". row is the row as
// written. References and commands are not secrets.
func findPlaintextSecrets(row json.RawMessage) []string {
	root, err := configfile.ParseJSON(row)
	if err != nil {
		return nil
	}
	var all []string
	for _, m := range root.Members {
		switch m.Name {
		case "env", "headers":
			for _, p := range m.Value.Members {
				if isPlaintextSecret(p.Name, p.Value.Text) && !envVariableName().MatchString(p.Value.Text) &&
					!isCommandValue(p.Value) {
					all = append(all, strings.TrimSuffix(m.Name, "s")+" "+safetext.Line(p.Name))
				}
			}
		case "args":
			_, hidden := redactArgs(stringItems(m.Value))
			all = append(all, hidden...)
		case "url":
			_, hidden := redactURL(m.Value.Text)
			all = append(all, hidden...)
		case "auth", "oauth":
			for _, p := range m.Value.Members {
				if isPlaintextSecret(p.Name, p.Value.Text) && p.Value.Kind == configfile.Text &&
					!isCommandValue(p.Value) {
					all = append(all, m.Name+" "+safetext.Line(p.Name))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isCommandValue reports whether a value is "!" followed by a command.
func isCommandValue(v configfile.Node) bool { return strings.HasPrefix(v.Text, "!") }

// redactedCommandLine returns a description of the row in one line: the program and its arguments, or the url, as
// written. Variables are not expanded, and possible secrets are replaced by "…".
func redactedCommandLine(row json.RawMessage) string {
	root, err := configfile.ParseJSON(row)
	if err != nil {
		return ""
	}
	member := func(name string) configfile.Node {
		m, _ := root.Find(name)
		return m.Value
	}
	if address := member("url").Text; address != "" {
		shown, _ := redactURL(address)
		return safetext.Line(shown)
	}
	if member("command").Text == "" {
		return ""
	}
	args, _ := redactArgs(stringItems(member("args")))
	words := append([]string{member("command").Text}, args...)
	for i, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\"'") {
			words[i] = fmt.Sprintf("%q", word)
		}
	}
	return safetext.Line(strings.Join(words, " "))
}

// isPlaintextSecret reports whether a value looks like a secret in plain text, by its prefix or by its name.
func isPlaintextSecret(name, value string) bool {
	switch {
	case strings.Contains(value, "${") || strings.Contains(value, "$(") || value == "":
		return false
	case secretValue().MatchString(value):
		return true
	case !secretName().MatchString(name):
		return false
	}
	// A short word, a number or a path is a setting, even if its name looks like a secret's: KEY=id, TOKEN=/run/token.
	return len(value) >= 6 && !strings.ContainsAny(value[:1], "/~.") && strings.Trim(value, "0123456789") != ""
}

// redactArgs returns the arguments with possible secrets replaced by "…". hidden names the replaced secrets, such as
// "args --api-key".
func redactArgs(args []string) (shown, hidden []string) {
	shown = slices.Clone(args)
	for i, arg := range args {
		flag, value, joined := strings.Cut(arg, "=")
		variable, set, _ := strings.Cut(value, "=") // as in --env=NAME=value
		header, content, _ := strings.Cut(arg, ":")
		address, inURL := redactURL(arg)
		switch {
		case joined && isPlaintextSecret(flag, value):
			shown[i] = flag + "=…"
			hidden = append(hidden, "args "+safetext.Line(flag))
		case isBareName(variable) && isPlaintextSecret(variable, set):
			shown[i] = flag + "=" + variable + "=…"
			hidden = append(hidden, "args "+safetext.Line(flag+"="+variable))
		case secretValue().MatchString(arg):
			shown[i] = "…"
			hidden = append(hidden, fmt.Sprintf("args %d", i+1))
		case i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=") && !strings.HasPrefix(arg,
			"-") && isPlaintextSecret(args[i-1], arg):
			shown[i] = "…"
			hidden = append(hidden, "args "+safetext.Line(args[i-1]))
		case isPlaintextSecret(header, strings.TrimSpace(content)):
			shown[i] = header + ": …"
			hidden = append(hidden, "args "+safetext.Line(header))
		case len(inURL) > 0:
			shown[i] = address
			hidden = append(hidden, fmt.Sprintf("args %d", i+1))
		}
	}
	return shown, hidden
}

// redactURL returns a URL with its secrets replaced by "…". hidden names the secrets: a password, a user that is a
// token, and query parameters. A text that is not a URL is returned unchanged. The text is not parsed as a complete
// URL, because it may contain variables that are not expanded.
func redactURL(text string) (shown string, hidden []string) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || !schemeAtEnd().MatchString(scheme) {
		return text, nil
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		user, password, has := strings.Cut(authority[:i], ":")
		what := ""
		switch {
		case has && !strings.Contains(password, "${"):
			what = "url password"
		case secretValue().MatchString(user):
			what = "url user"
		}
		if what != "" {
			hidden = append(hidden, what)
			authority = "…" + authority[i:]
		}
	}
	var b strings.Builder
	b.WriteString(scheme + "://" + authority)
	for tail != "" { // the path, or a part that begins with ?, & or #
		i := len(tail)
		if end := strings.IndexAny(tail[1:], "?&#"); end >= 0 {
			i = 1 + end
		}
		name, value, _ := strings.Cut(tail[1:i], "=")
		if tail[0] != '/' && isPlaintextSecret(name, value) {
			hidden = append(hidden, "url "+safetext.Line(name))
			b.WriteString(tail[:1] + name + "=…")
		} else {
			b.WriteString(tail[:i])
		}
		tail = tail[i:]
	}
	return b.String(), hidden
}

// schemeAtEnd matches the scheme of a URL at the end of a text. The name of a flag may precede it, as in --url=https.
var schemeAtEnd = lazyregexp.New(`[A-Za-z][A-Za-z0-9+.-]*$`)

// stringItems returns the items of a list as strings; an item that is not a string becomes "".
func stringItems(list configfile.Node) (all []string) {
	for _, item := range list.Items {
		word, _ := item.TextValue()
		all = append(all, word)
	}
	return all
}

package roster

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// hidden stands where a secret may be.
const hidden = "[redacted]"

// Lines shows a row to somebody who is to decide about it: a name and a value each. Commands that would run, arguments and
// where an address leads are whole, and so are variables that steer how programs start, and the names of all variables that
// would be given away; what may be a secret is not shown.
func (e Entry) Lines() []config.Pair {
	lines := e.Members()
	cwd := false
	for i, p := range lines {
		cwd = cwd || p.Name == "cwd"
		if p.Name == "args" {
			lines[i].Value = printable(string(wire.Get(e.Server.Row, "args")))
		}
	}
	if e.Server.Command != "" && !cwd {
		lines = append(lines, config.Pair{Name: "runs in", Value: printable(e.Server.Cwd)})
	}
	if len(e.Unresolved) > 0 {
		lines = append(lines, config.Pair{Name: "not set", Value: strings.Join(e.Unresolved, ", ")})
	}
	if e.Replaces != "" {
		lines = append(lines, config.Pair{Name: "takes the place of", Value: e.Replaces})
	}
	return lines
}

// Members shows a row's members as Row has them: a name and a value each, those of env and headers each by its own name.
func (e Entry) Members() []config.Pair {
	var lines []config.Pair
	for m := range wire.Members(e.Row) {
		name, _ := wire.Text(m.Name)
		if name != "env" && name != "headers" {
			lines = append(lines, config.Pair{Name: printable(name), Value: plain(m.Value)})
			continue
		}
		kind := strings.TrimSuffix(name, "s")
		for one := range wire.Members(m.Value) {
			inner, _ := wire.Text(one.Name)
			what := kind + " " + printable(inner)
			lines = append(lines, config.Pair{Name: what, Value: e.value(what, plain(one.Value))})
		}
	}
	return lines
}

// plain is a value for a terminal: a text as it is, whatever else as JSON.
func plain(raw json.RawMessage) string {
	if text, ok := wire.Text(raw); ok {
		return printable(text)
	}
	return printable(string(raw))
}

// value says what a value of env or headers is.
func (e Entry) value(what, text string) string {
	switch {
	case slices.Contains(e.Commands, what):
		return "what this command prints: " + strings.TrimPrefix(text, "!")
	case slices.Contains(e.Environment, what+" from "+text):
		return "your variable " + text
	}
	return text
}

// redacted is a row as it is written, without what may be a secret: of a value of env and headers, of what a url says
// beside host and path, of auth and of members that nobody knows, only variables and what is harmless are left.
func redacted(row config.Server) json.RawMessage {
	shown := wire.EachValue(row.Row, func(m wire.Member) json.RawMessage {
		name, _ := wire.Text(m.Name)
		switch {
		case name == "env" || name == "headers":
			return redactedPairs(row, strings.TrimSuffix(name, "s"), m.Value)
		case name == "args":
			return redactedArgs(m.Value)
		case name == "url":
			return redactText(m.Value, redactURL)
		case name == "auth" || slices.ContainsFunc(row.Extra, func(u config.Unknown) bool { return u.Name == name }):
			return redactAll(m.Value)
		}
		return m.Value
	})
	return json.RawMessage(printable(string(shown))) // what is not printable can only be in a text
}

// redactText changes a JSON string; any other value stays.
func redactText(value json.RawMessage, change func(string) string) json.RawMessage {
	if s, ok := wire.Text(value); ok {
		return wire.Quote(change(s))
	}
	return value
}

// redactAll hides every text and number in a value, but for variables.
func redactAll(value json.RawMessage) json.RawMessage {
	if s, ok := wire.Text(value); ok {
		return wire.Quote(redact(s))
	}
	switch value[0] {
	case '{':
		return wire.EachValue(value, func(m wire.Member) json.RawMessage {
			if m.Is("type") {
				return m.Value
			}
			return redactAll(m.Value)
		})
	case '[':
		items := []json.RawMessage{}
		for item := range wire.Elements(value) {
			items = append(items, redactAll(item))
		}
		b, err := json.Marshal(items)
		if err != nil {
			return wire.Quote(hidden)
		}
		return b
	case 't', 'f', 'n':
		return value
	}
	return wire.Quote(hidden)
}

func redactedPairs(row config.Server, kind string, pairs json.RawMessage) json.RawMessage {
	return wire.EachValue(pairs, func(m wire.Member) json.RawMessage {
		name, _ := wire.Text(m.Name)
		what := kind + " " + printable(name)
		text, ok := wire.Text(m.Value)
		switch {
		case !ok && kind == "env" && steers(name):
			return m.Value
		case !ok:
			return redactAll(m.Value)
		case slices.Contains(row.Commands, what) || slices.Contains(row.FromEnv, what+" from "+text) || kind == "env" && steers(name):
			return wire.Quote(text)
		}
		return wire.Quote(redact(text))
	})
}

// steering has the names of variables that say what programs load when they start. They are no place for secrets, and
// whoever approves a row must see them.
var steering = regexp.MustCompile(`^((LD|DYLD)_.*|.*PATH|BASH_ENV|ENV|SHELL|NODE_OPTIONS|PYTHON(STARTUP|HOME)|PERL5(LIB|OPT)|RUBY(LIB|OPT)|` +
	`(JAVA_TOOL|_JAVA|JDK_JAVA)_OPTIONS|GIT_SSH_COMMAND)$`)

func steers(name string) bool { return steering.MatchString(name) }

// harmless are values of switches.
var harmless = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|0|1|debug|info|warn|error|production|development)?$`)

// scheme is what may come before the secret in a header.
var scheme = regexp.MustCompile(`(?i)^(Bearer|Basic|Token) +`)

// reference is a variable in a value, with its default.
var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*|input:[A-Za-z0-9_.-]+)(:-[^}]*)?\}`)

// redact leaves of a text what is a variable.
func redact(s string) string {
	if harmless.MatchString(s) {
		return s
	}
	shown := scheme.FindString(s)
	rest := s[len(shown):]
	var b strings.Builder
	b.WriteString(shown)
	hide := func(part string) {
		if part != "" {
			b.WriteString(hidden)
		}
	}
	for {
		at := reference.FindStringSubmatchIndex(rest)
		if at == nil || at[0] > 0 && rest[at[0]-1] == '$' { // "$${" is no variable
			hide(rest)
			return b.String()
		}
		hide(rest[:at[0]])
		b.WriteString("${" + rest[at[2]:at[3]])
		if at[4] >= 0 && at[5]-at[4] > len(":-") {
			b.WriteString(":-" + hidden)
		}
		b.WriteString("}")
		rest = rest[at[1]:]
	}
}

// redactURL leaves scheme, host and path.
func redactURL(s string) string {
	main, rest := s, ""
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		main, rest = s[:i], s[i:i+1]+redactQuery(s[i+1:])
	}
	head, address, ok := strings.Cut(main, "://")
	if !ok {
		return main + rest
	}
	host, path, _ := strings.Cut(address, "/")
	if i := strings.LastIndex(host, "@"); i >= 0 {
		main = head + "://" + redact(host[:i]) + host[i:]
		if strings.Contains(address, "/") {
			main += "/" + path
		}
	}
	return main + rest
}

func redactQuery(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			parts[i] = redact(part)
			continue
		}
		parts[i] = name + "=" + redact(value)
	}
	return strings.Join(parts, "&")
}

// secretFlag is an option whose value is a secret, by its name.
var secretFlag = regexp.MustCompile(`(?i)^--?[a-z0-9_-]*(token|key|secret|passw|pwd|auth|credential)[a-z0-9_-]*(=|$)`)

// redactedArgs hides the values of options that have a secret's name.
func redactedArgs(args json.RawMessage) json.RawMessage {
	var words []string
	after := false
	for item := range wire.Elements(args) {
		word, _ := wire.Text(item)
		flag := secretFlag.FindString(word)
		switch {
		case after:
			word = redact(word)
		case strings.HasSuffix(flag, "="):
			word = flag + redact(word[len(flag):])
		}
		after = !after && flag != "" && !strings.HasSuffix(flag, "=")
		words = append(words, word)
	}
	return wire.AppendTexts(nil, words...)
}

// printable replaces what a terminal should not be shown.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return unicode.ReplacementChar
	}, s)
}

func printables(all []string) (shown []string) {
	for _, s := range all {
		shown = append(shown, printable(s))
	}
	return shown
}

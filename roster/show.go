package roster

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// hidden stands where a secret may be.
const hidden = "[redacted]"

// Lines shows a row to somebody who is to decide about it: a name and a value each, and what they should take note of last. Commands that would run, arguments and
// where an address leads are whole, and so are variables that steer how programs start, and the names of all variables that
// would be given away; what may be a secret is not shown.
func (e Entry) Lines() []config.Pair {
	lines := e.Members()
	cwd := false
	for i, p := range lines {
		cwd = cwd || p.Name == "cwd"
		if p.Name == "args" {
			lines[i].Value = shownJSON(wire.Get(e.Server.Row, "args"))
		}
	}
	if e.Server.Command != "" && !cwd {
		lines = append(lines, config.Pair{Name: "runs in", Value: safetext.Exact(e.Server.Cwd)})
	}
	lines = append(lines, e.Runs()...)
	if len(e.Unresolved) > 0 {
		lines = append(lines, config.Pair{Name: "not set", Value: strings.Join(e.Unresolved, ", ")})
	}
	if e.Replaces != "" {
		lines = append(lines, config.Pair{Name: "takes the place of", Value: e.Replaces})
	}
	return append(lines, e.Notes()...)
}

// Notes shows the findings, the most of what somebody who decides about a row has to know.
func (e Entry) Notes() (lines []config.Pair) {
	for _, f := range e.Findings {
		lines = append(lines, config.Pair{Name: "take note", Value: f.Text})
	}
	return lines
}

// Members shows a row's members as Row has them: a name and a value each, those of env and headers each by its own name.
func (e Entry) Members() []config.Pair {
	var lines []config.Pair
	for m := range wire.Members(e.Row) {
		name, _ := wire.Text(m.Name)
		if name != "env" && name != "headers" {
			lines = append(lines, config.Pair{Name: safetext.Exact(name), Value: plain(m.Value)})
			continue
		}
		kind := strings.TrimSuffix(name, "s")
		for one := range wire.Members(m.Value) {
			inner, _ := wire.Text(one.Name)
			lines = append(lines, config.Pair{Name: kind + " " + safetext.Exact(inner), Value: e.value(kind+" "+safetext.Line(inner), one.Value)})
		}
	}
	return lines
}

// plain is a value for a terminal: a text as it is, whatever else as JSON.
func plain(raw json.RawMessage) string {
	if text, ok := wire.Text(raw); ok {
		return safetext.Exact(text)
	}
	return shownJSON(raw)
}

// shownJSON returns JSON on one line as a person may decide on it. Its texts double their backslashes already, as JSON does.
func shownJSON(raw json.RawMessage) string { return safetext.Line(string(raw)) }

// value says what a value of env or headers is.
func (e Entry) value(what string, raw json.RawMessage) string {
	text, _ := wire.Text(raw)
	switch {
	case strings.HasPrefix(text, "!") && slices.Contains(e.Commands, what):
		return "what this command prints: " + safetext.Exact(strings.TrimPrefix(text, "!"))
	case text != "" && slices.Contains(e.Environment, what+" from "+text):
		return "your variable " + safetext.Exact(text)
	}
	return plain(raw)
}

// redacted is a row as it is written, without what may be a secret: of a value of env and headers, of what a url says
// beside host and path, of what in auth may be one, of members that nobody knows and of what is of another kind than it
// should be, only variables, references and what is harmless are left.
func redacted(row config.Server) json.RawMessage {
	shown := wire.EachValue(row.Row, func(m wire.Member) json.RawMessage {
		name, _ := wire.Text(m.Name)
		address, isText := wire.Text(m.Value)
		isObject, isList := m.Value[0] == '{', m.Value[0] == '['
		switch {
		case (name == "env" || name == "headers") && isObject:
			return redactedPairs(row, strings.TrimSuffix(name, "s"), m.Value)
		case (name == "auth" || name == "oauth") && isObject:
			return redactedAuth(row, m.Value)
		case name == "args" && isList:
			return redactedArgs(m.Value)
		case name == "url" && isText:
			return wire.Quote(redactURL(address))
		case name == "expected_tools" && isList, name == "confine", !secretive(row, name) && !isObject && !isList:
			return m.Value
		}
		return redactAll(m.Value)
	})
	return safetext.JSON(shown)
}

// secretive says of which members no text is shown as it is.
func secretive(row config.Server, name string) bool {
	return slices.Contains([]string{"env", "headers", "args", "url", "auth", "oauth"}, name) ||
		slices.ContainsFunc(row.Extra, func(u config.Unknown) bool { return u.Name == name })
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
		var items [][]byte
		for item := range wire.Elements(value) {
			items = append(items, redactAll(item))
		}
		return list(items)
	case 't', 'f', 'n':
		return value
	}
	return wire.Quote(hidden)
}

func list(items [][]byte) json.RawMessage {
	return slices.Concat([]byte{'['}, bytes.Join(items, []byte{','}), []byte{']'})
}

// redactedAuth shows where one signs in and as whom.
func redactedAuth(row config.Server, auth json.RawMessage) json.RawMessage {
	return wire.EachValue(auth, func(m wire.Member) json.RawMessage {
		written, _ := wire.Text(m.Name)
		text, isText := wire.Text(m.Value)
		name, public := config.AuthMember(written)
		switch {
		case isText && strings.HasPrefix(text, "!") && row.Parts("auth "+name) != nil:
			return m.Value
		case public && strings.Contains(text, "://"):
			return wire.Quote(redactURL(text))
		case public && isText && !strings.Contains(text, "${"), name == "callback_port" && !isText && m.Value[0] <= '9',
			name == "scopes" && m.Value[0] == '[':
			return m.Value
		}
		return redactAll(m.Value)
	})
}

func redactedPairs(row config.Server, kind string, pairs json.RawMessage) json.RawMessage {
	return wire.EachValue(pairs, func(m wire.Member) json.RawMessage {
		name, _ := wire.Text(m.Name)
		what := kind + " " + safetext.Line(name)
		text, ok := wire.Text(m.Value)
		switch {
		case !ok && kind == "env" && steers(name):
			return m.Value
		case !ok:
			return redactAll(m.Value)
		case strings.HasPrefix(text, "!") && row.Parts(kind+" "+name) != nil || slices.Contains(row.FromEnv, what+" from "+text) || kind == "env" && steers(name):
			return wire.Quote(text)
		case kind == "env" && leads().MatchString(name):
			return wire.Quote(redactURL(text))
		}
		return wire.Quote(redact(text))
	})
}

// steering has the names of variables that say what programs load when they start. They are no place for secrets, and
// whoever approves a row must see them.
var steering = made(`^((LD|DYLD)_.*|.*PATH|BASH_ENV|ENV|SHELL|NODE_OPTIONS|PYTHON(STARTUP|HOME)|PERL5(LIB|OPT)|RUBY(LIB|OPT)|` +
	`(JAVA_TOOL|_JAVA|JDK_JAVA)_OPTIONS|GIT_SSH_COMMAND)$`)

// leads has the names of variables that say where what a program sends goes, and where packages come from.
var leads = made(`(?i)^((HTTPS?|ALL|NO)_PROXY|NPM_CONFIG_REGISTRY|UV_(DEFAULT_INDEX|INDEX|INDEX_URL)|PIP_(EXTRA_)?INDEX_URL|DOCKER_HOST)$`)

func steers(name string) bool { return steering().MatchString(name) }

// harmless are values of switches.
var harmless = made(`(?i)^(true|false|yes|no|on|off|0|1|debug|info|warn|error|production|development)?$`)

// scheme is what may come before the secret in a header.
var scheme = made(`(?i)^(Bearer|Basic|Token) +`)

// reference is a variable in a value, with its default, or what a value refers to, as a whole: whoever approves a row must
// see what is read and run.
var reference = made(`\$\{((?:file|keychain|command):[^-}][^}]*|(?:env:)?[A-Za-z_][A-Za-z0-9_]*|input:[A-Za-z0-9_.-]+)(:-[^}]*)?\}`)

// redact leaves of a text what is a variable or a reference.
func redact(s string) string {
	if harmless().MatchString(s) {
		return s
	}
	shown := scheme().FindString(s)
	rest := s[len(shown):]
	var b strings.Builder
	b.WriteString(shown)
	hide := func(part string) {
		if part != "" {
			b.WriteString(hidden)
		}
	}
	for {
		at := reference().FindStringSubmatchIndex(rest)
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

// redactURL leaves scheme, host and path. Variables may hold any of the signs that divide an address, and so may their
// defaults: those divide nothing here, and what stands before a host beside a variable is shown, since it may be the host.
func redactURL(s string) string {
	mask := reference().ReplaceAllStringFunc(s, func(r string) string { return strings.Repeat("_", len(r)) })
	main, rest := s, ""
	if i := strings.IndexAny(mask, "?#"); i >= 0 {
		main, mask, rest = s[:i], mask[:i], s[i:i+1]+redactQuery(s[i+1:])
	}
	start := strings.Index(mask, "://") + len("://")
	if start < len("://") {
		return main + rest
	}
	host, _, _ := strings.Cut(mask[start:], "/")
	if i := start + strings.LastIndex(host, "@"); i >= start && !strings.Contains(main[start:i], "${") {
		main = main[:start] + redact(main[start:i]) + main[i:]
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

// secretFlag is an option whose value is a secret, by its name, headerFlag one whose value is a header.
var (
	secretFlag = made(`(?i)^--?[a-z0-9_-]*(token|key|secret|passw|pwd|auth|credential)[a-z0-9_-]*(=|$)`)
	headerFlag = made(`^(-H|--header)(=|$)`)
)

// redactedArgs hides the values of options that have a secret's name, and arguments that look like secrets.
func redactedArgs(args json.RawMessage) json.RawMessage {
	var items [][]byte
	var words []string
	for item := range wire.Elements(args) {
		word, _ := wire.Text(item)
		items, words = append(items, redactAll(item)), append(words, word)
	}
	for i, word := range redactWords(words) {
		if items[i][0] == '"' && words[i] != "" {
			items[i] = wire.Quote(word)
		}
	}
	return list(items)
}

// redactWords is redactedArgs for words.
func redactWords(words []string) []string {
	looks := config.PlainSecrets(wire.Apply(nil, wire.Put(wire.AppendTexts(nil, words...), "args")))
	var shown []string
	var value func(string) string // hides the value of the option before, if that has one
	for i, word := range words {
		option, hide := optionOf(word)
		switch {
		case value != nil:
			word, hide = value(word), nil
		case strings.HasSuffix(option, "="):
			word, hide = option+hide(word[len(option):]), nil
		case strings.Contains(word, "://"):
			word = redactURL(word)
		case slices.Contains(looks, "args "+strconv.Itoa(i+1)):
			word = redact(word)
		}
		value = hide
		shown = append(shown, word)
	}
	return shown
}

// optionOf gives the option that a word is or begins with, if its value is to be hidden, and how.
func optionOf(word string) (option string, hide func(string) string) {
	if option = secretFlag().FindString(word); option != "" {
		return option, redact
	}
	if option = headerFlag().FindString(word); option != "" {
		return option, redactHeader
	}
	return "", nil
}

// redactHeader leaves a header's name, and a text that is none.
func redactHeader(s string) string {
	name, value, ok := strings.Cut(s, ":")
	if !ok {
		return s
	}
	text := strings.TrimLeft(value, " ")
	return name + ":" + value[:len(value)-len(text)] + redact(text)
}

// made is an expression that is made when it is first needed: most starts of the program need none of these.
func made(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

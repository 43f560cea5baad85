package admin

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// redactedText stands where a secret may be.
const redactedText = "[redacted]"

// ApprovalLines shows a row to somebody who is to decide about it: a name and a value each, and what they should take
// note of last. Commands that would run, arguments and where an address leads are whole, and so are variables that
// steer how programs start, and the names of all variables that would be given away; what may be a secret is not shown.
func (e ServerEntry) ApprovalLines() []config.NameValue {
	lines := e.MemberLines()
	cwd := false
	for i, p := range lines {
		cwd = cwd || p.Name == "cwd"
		if p.Name == "args" {
			lines[i].Value = shownJSON(rawjson.Get(e.Server.Raw, "args"))
		}
	}
	if e.Server.Command != "" && !cwd {
		lines = append(lines, config.NameValue{Name: "runs in", Value: safetext.Exact(e.Server.Cwd)})
	}
	lines = append(lines, e.ProgramLines()...)
	if len(e.Unresolved) > 0 {
		lines = append(lines, config.NameValue{Name: "not set", Value: strings.Join(e.Unresolved, ", ")})
	}
	if e.Replaces != "" {
		lines = append(lines, config.NameValue{Name: "takes the place of", Value: e.Replaces})
	}
	return append(lines, e.FindingLines()...)
}

// FindingLines shows the findings, the most of what somebody who decides about a row has to know.
func (e ServerEntry) FindingLines() (lines []config.NameValue) {
	for _, f := range e.Findings {
		lines = append(lines, config.NameValue{Name: "take note", Value: f.Text})
	}
	return lines
}

// MemberLines shows a row's members as Row has them: a name and a value each, those of env and headers each by its own
// name.
func (e ServerEntry) MemberLines() []config.NameValue {
	var lines []config.NameValue
	for m := range rawjson.Members(e.Row) {
		name, _ := rawjson.DecodeString(m.Name)
		if name != "env" && name != "headers" {
			lines = append(lines, config.NameValue{Name: safetext.Exact(name), Value: formatValue(m.Value)})
			continue
		}
		kind := strings.TrimSuffix(name, "s")
		for one := range rawjson.Members(m.Value) {
			inner, _ := rawjson.DecodeString(one.Name)
			lines = append(lines, config.NameValue{Name: kind + " " + safetext.Exact(inner),
				Value: e.describeValue(kind+" "+safetext.Line(inner), one.Value)})
		}
	}
	return lines
}

// formatValue is a value for a terminal: a text as it is, whatever else as JSON.
func formatValue(raw json.RawMessage) string {
	if text, ok := rawjson.DecodeString(raw); ok {
		return safetext.Exact(text)
	}
	return shownJSON(raw)
}

// shownJSON returns JSON on one line as a person may decide on it. Its texts double their backslashes already, as JSON
// does.
func shownJSON(raw json.RawMessage) string { return safetext.Line(string(raw)) }

// describeValue says what a value of env or headers is.
func (e ServerEntry) describeValue(what string, raw json.RawMessage) string {
	text, _ := rawjson.DecodeString(raw)
	switch {
	case strings.HasPrefix(text, "!") && slices.Contains(e.Commands, what):
		return "what this command prints: " + safetext.Exact(strings.TrimPrefix(text, "!"))
	case text != "" && slices.Contains(e.Environment, what+" from "+text):
		return "your variable " + safetext.Exact(text)
	}
	return formatValue(raw)
}

// redactRow is a row as it is written, without what may be a secret: of a value of env and headers, of what a url says
// beside host and path, of what in auth may be one, of members that nobody knows and of what is of another kind than it
// should be, only variables, references and what is harmless are left.
func redactRow(row config.Server) json.RawMessage {
	shown := rawjson.MapValues(row.Raw, func(m rawjson.Member) json.RawMessage {
		name, _ := rawjson.DecodeString(m.Name)
		address, isText := rawjson.DecodeString(m.Value)
		isObject, isList := m.Value[0] == '{', m.Value[0] == '['
		switch {
		case (name == "env" || name == "headers") && isObject:
			return redactPairs(row, strings.TrimSuffix(name, "s"), m.Value)
		case (name == "auth" || name == "oauth") && isObject:
			return redactAuth(row, m.Value)
		case name == "args" && isList:
			return redactArgs(m.Value)
		case name == "url" && isText:
			return rawjson.Quote(redactURL(address))
		case name == "expected_tools" && isList, name == "confine", !isSensitiveMember(row, name) &&
			!isObject && !isList:
			return m.Value
		}
		return redactValue(m.Value)
	})
	return safetext.JSON(shown)
}

// isSensitiveMember says of which members no text is shown as it is.
func isSensitiveMember(row config.Server, name string) bool {
	return slices.Contains([]string{"env", "headers", "args", "url", "auth", "oauth"}, name) ||
		slices.ContainsFunc(row.UnknownMembers, func(u config.UnknownMember) bool { return u.Name == name })
}

// redactValue hides every text and number in a value, but for variables.
func redactValue(value json.RawMessage) json.RawMessage {
	if s, ok := rawjson.DecodeString(value); ok {
		return rawjson.Quote(redactText(s))
	}
	switch value[0] {
	case '{':
		return rawjson.MapValues(value, func(m rawjson.Member) json.RawMessage {
			if m.HasName("type") {
				return m.Value
			}
			return redactValue(m.Value)
		})
	case '[':
		var items [][]byte
		for item := range rawjson.Elements(value) {
			items = append(items, redactValue(item))
		}
		return jsonArray(items)
	case 't', 'f', 'n':
		return value
	}
	return rawjson.Quote(redactedText)
}

func jsonArray(items [][]byte) json.RawMessage {
	return slices.Concat([]byte{'['}, bytes.Join(items, []byte{','}), []byte{']'})
}

// redactAuth shows where one signs in and as whom.
func redactAuth(row config.Server, auth json.RawMessage) json.RawMessage {
	return rawjson.MapValues(auth, func(m rawjson.Member) json.RawMessage {
		written, _ := rawjson.DecodeString(m.Name)
		text, isText := rawjson.DecodeString(m.Value)
		name, public := config.CanonicalAuthMember(written)
		switch {
		case isText && strings.HasPrefix(text, "!") && row.DeferredParts("auth "+name) != nil:
			return m.Value
		case public && strings.Contains(text, "://"):
			return rawjson.Quote(redactURL(text))
		case public && isText && !strings.Contains(text, "${"), name == "callback_port" && !isText && m.Value[0] <= '9',
			name == "scopes" && m.Value[0] == '[':
			return m.Value
		}
		return redactValue(m.Value)
	})
}

func redactPairs(row config.Server, kind string, pairs json.RawMessage) json.RawMessage {
	return rawjson.MapValues(pairs, func(m rawjson.Member) json.RawMessage {
		name, _ := rawjson.DecodeString(m.Name)
		what := kind + " " + safetext.Line(name)
		text, ok := rawjson.DecodeString(m.Value)
		switch {
		case !ok && kind == "env" && isLoaderVariable(name):
			return m.Value
		case !ok:
			return redactValue(m.Value)
		case strings.HasPrefix(text, "!") && row.DeferredParts(kind+" "+name) != nil ||
			slices.Contains(row.FromVariables, what+" from "+text) || kind == "env" && isLoaderVariable(name):
			return rawjson.Quote(text)
		case kind == "env" && networkVariables().MatchString(name):
			return rawjson.Quote(redactURL(text))
		}
		return rawjson.Quote(redactText(text))
	})
}

// loaderVariables has the names of variables that say what programs load when they start. They are no place for
// secrets, and whoever approves a row must see them.
var loaderVariables = lazyRegexp(
	`^((LD|DYLD)_.*|.*PATH|BASH_ENV|ENV|SHELL|NODE_OPTIONS|PYTHON(STARTUP|HOME)|PERL5(LIB|OPT)|RUBY(LIB|OPT)|` +
		`(JAVA_TOOL|_JAVA|JDK_JAVA)_OPTIONS|GIT_SSH_COMMAND)$`)

// networkVariables has the names of variables that say where what a program sends goes, and where packages come from.
var networkVariables = lazyRegexp(
	`(?i)^((HTTPS?|ALL|NO)_PROXY|NPM_CONFIG_REGISTRY|UV_(DEFAULT_INDEX|INDEX|INDEX_URL)|PIP_(EXTRA_)?INDEX_URL|DOCKER_HOST)$`)

func isLoaderVariable(name string) bool { return loaderVariables().MatchString(name) }

// harmlessValue are values of switches.
var harmlessValue = lazyRegexp(`(?i)^(true|false|yes|no|on|off|0|1|debug|info|warn|error|production|development)?$`)

// authSchemePrefix is what may come before the secret in a header.
var authSchemePrefix = lazyRegexp(`(?i)^(Bearer|Basic|Token) +`)

// valueReference is a variable in a value, with its default, or what a value refers to, as a whole: whoever approves a
// row must see what is read and run.
var valueReference = lazyRegexp(
	`\$\{((?:file|keychain|command):[^-}][^}]*|(?:env:)?[A-Za-z_][A-Za-z0-9_]*|input:[A-Za-z0-9_.-]+)(:-[^}]*)?\}`)

// redactText leaves of a text what is a variable or a reference.
func redactText(s string) string {
	if harmlessValue().MatchString(s) {
		return s
	}
	shown := authSchemePrefix().FindString(s)
	rest := s[len(shown):]
	var b strings.Builder
	b.WriteString(shown)
	hide := func(part string) {
		if part != "" {
			b.WriteString(redactedText)
		}
	}
	for {
		at := valueReference().FindStringSubmatchIndex(rest)
		if at == nil || at[0] > 0 && rest[at[0]-1] == '$' { // "$${" is no variable
			hide(rest)
			return b.String()
		}
		hide(rest[:at[0]])
		b.WriteString("${" + rest[at[2]:at[3]])
		if at[4] >= 0 && at[5]-at[4] > len(":-") {
			b.WriteString(":-" + redactedText)
		}
		b.WriteString("}")
		rest = rest[at[1]:]
	}
}

// redactURL leaves scheme, host and path. Variables may hold any of the signs that divide an address, and so may their
// defaults: those divide nothing here, and what stands before a host beside a variable is shown, since it may be the
// host.
func redactURL(s string) string {
	mask := valueReference().ReplaceAllStringFunc(s, func(r string) string { return strings.Repeat("_", len(r)) })
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
		main = main[:start] + redactText(main[start:i]) + main[i:]
	}
	return main + rest
}

func redactQuery(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			parts[i] = redactText(part)
			continue
		}
		parts[i] = name + "=" + redactText(value)
	}
	return strings.Join(parts, "&")
}

// secretFlag is an option whose value is a secret, by its name, headerFlag one whose value is a header.
var (
	secretFlag = lazyRegexp(`(?i)^--?[a-z0-9_-]*(token|key|secret|passw|pwd|auth|credential)[a-z0-9_-]*(=|$)`)
	headerFlag = lazyRegexp(`^(-H|--header)(=|$)`)
)

// redactArgs hides the values of options that have a secret's name, and arguments that look like secrets.
func redactArgs(args json.RawMessage) json.RawMessage {
	var items [][]byte
	var words []string
	for item := range rawjson.Elements(args) {
		word, _ := rawjson.DecodeString(item)
		items, words = append(items, redactValue(item)), append(words, word)
	}
	for i, word := range redactWords(words) {
		if items[i][0] == '"' && words[i] != "" {
			items[i] = rawjson.Quote(word)
		}
	}
	return jsonArray(items)
}

// redactWords is redactArgs for words.
func redactWords(words []string) []string {
	looks := config.PlaintextSecrets(rawjson.Apply(nil, rawjson.Put(rawjson.AppendStrings(nil, words...), "args")))
	var shown []string
	var value func(string) string // hides the value of the option before, if that has one
	for i, word := range words {
		option, hide := sensitiveOption(word)
		switch {
		case value != nil:
			word, hide = value(word), nil
		case strings.HasSuffix(option, "="):
			word, hide = option+hide(word[len(option):]), nil
		case strings.Contains(word, "://"):
			word = redactURL(word)
		case slices.Contains(looks, "args "+strconv.Itoa(i+1)):
			word = redactText(word)
		}
		value = hide
		shown = append(shown, word)
	}
	return shown
}

// sensitiveOption gives the option that a word is or begins with, if its value is to be hidden, and how.
func sensitiveOption(word string) (option string, hide func(string) string) {
	if option = secretFlag().FindString(word); option != "" {
		return option, redactText
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
	return name + ":" + value[:len(value)-len(text)] + redactText(text)
}

// lazyRegexp is an expression that is made when it is first needed: most starts of the program need none of these.
func lazyRegexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

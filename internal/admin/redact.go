package admin

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/launch"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// redactedText replaces a value that may be a secret.
const redactedText = "[redacted]"

// ApprovalLines returns the lines that a person reads before a decision on a row; the findings are last. It shows
// commands, arguments and addresses, the variables that control how programs start, and the names of all variables.
// Values that may be secrets are redacted.
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

// FindingLines returns the findings of a row as lines.
func (e ServerEntry) FindingLines() (lines []config.NameValue) {
	for _, f := range e.Findings {
		text := f.Text
		if f.Code == launch.CommandNotAllowed {
			text = "this command is not one of the usual programs: it can start only if you approve this row"
		}
		lines = append(lines, config.NameValue{Name: "take note", Value: text})
	}
	return lines
}

// MemberLines returns the members of Row as lines. Each member of env and headers has its own line.
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

// formatValue formats a value for a terminal: a string without quotes, any other value as JSON.
func formatValue(raw json.RawMessage) string {
	if text, ok := rawjson.DecodeString(raw); ok {
		return safetext.Exact(text)
	}
	return shownJSON(raw)
}

// shownJSON returns JSON on one line, with characters that could mislead a person escaped. JSON strings already have
// their backslashes doubled.
func shownJSON(raw json.RawMessage) string { return safetext.Line(string(raw)) }

// describeValue returns the text that a person sees for a value of env or headers.
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

// redactRow returns a row as written, but with values that may be secrets redacted. It redacts env, headers, unknown
// members and members of the wrong type. It also redacts the secrets of auth, and the parts of a URL except scheme,
// host and path. Variables, references and harmless values in them are not redacted.
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

// isSensitiveMember reports whether the texts of a member may be secrets and must be redacted.
func isSensitiveMember(row config.Server, name string) bool {
	return slices.Contains([]string{"env", "headers", "args", "url", "auth", "oauth"}, name) ||
		slices.ContainsFunc(row.UnknownMembers, func(u config.UnknownMember) bool { return u.Name == name })
}

// redactValue redacts every string and number in a value, except variables.
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

// redactAuth redacts the member auth, except the address of the issuer and the identity of the client.
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

// loaderVariables matches the names of variables that control which code programs load when they start. Their values
// are not secrets, and a person who approves a row must see them.
var loaderVariables = lazyregexp.New(
	`^((LD|DYLD)_.*|.*PATH|BASH_ENV|ENV|SHELL|NODE_OPTIONS|PYTHON(STARTUP|HOME)|PERL5(LIB|OPT)|RUBY(LIB|OPT)|` +
		`(JAVA_TOOL|_JAVA|JDK_JAVA)_OPTIONS|GIT_SSH_COMMAND)$`)

// networkVariables matches the names of variables that control where a program sends data and from where it downloads
// packages.
var networkVariables = lazyregexp.New(
	`(?i)^((HTTPS?|ALL|NO)_PROXY|NPM_CONFIG_REGISTRY|UV_(DEFAULT_INDEX|INDEX|INDEX_URL)|PIP_(EXTRA_)?INDEX_URL|DOCKER_HOST)$`)

func isLoaderVariable(name string) bool { return loaderVariables().MatchString(name) }

// harmlessValue matches values that are usual for switches and are not secrets.
var harmlessValue = lazyregexp.New(`(?i)^(true|false|yes|no|on|off|0|1|debug|info|warn|error|production|development)?$`)

// authSchemePrefix matches the scheme before the secret in a header.
var authSchemePrefix = lazyregexp.New(`(?i)^(Bearer|Basic|Token) +`)

// valueReference matches a variable with its default, or a reference, in a value. A person who approves a row must see
// which files are read and which commands are run.
var valueReference = lazyregexp.New(
	`\$\{((?:file|keychain|command):[^-}][^}]*|(?:env:)?[A-Za-z_][A-Za-z0-9_]*|input:[A-Za-z0-9_.-]+)(:-[^}]*)?\}`)

// redactText redacts a text, except its variables, references and the scheme of a header.
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
		if at == nil || at[0] > 0 && rest[at[0]-1] == '$' { // "$${" is not a variable
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

// redactURL redacts a URL, except its scheme, host and path. A variable or its default may contain any delimiter of a
// URL, so delimiters inside a variable are ignored. A text next to a variable before the host is not redacted, because
// it may be the host.
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

// secretFlag matches an option whose value is a secret, by the name of the option. headerFlag matches an option whose
// value is a header.
var (
	secretFlag = lazyregexp.New(`(?i)^--?[a-z0-9_-]*(token|key|secret|passw|pwd|auth|credential)[a-z0-9_-]*(=|$)`)
	headerFlag = lazyregexp.New(`^(-H|--header)(=|$)`)
)

// redactArgs redacts the values of options whose names suggest a secret, and arguments that look like secrets.
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

// redactWords redacts the words of a command in the same way as redactArgs.
func redactWords(words []string) []string {
	looks := config.PlaintextSecrets(rawjson.Apply(nil, rawjson.Put(rawjson.AppendStrings(nil, words...), "args")))
	var shown []string
	var value func(string) string // redacts the value of the previous option, if it has one
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

// sensitiveOption returns the option that a word is or begins with, if the value of the option must be redacted. hide
// is the function that redacts the value.
func sensitiveOption(word string) (option string, hide func(string) string) {
	if option = secretFlag().FindString(word); option != "" {
		return option, redactText
	}
	if option = headerFlag().FindString(word); option != "" {
		return option, redactHeader
	}
	return "", nil
}

// redactHeader redacts the value of a header. A text that is not a header is unchanged.
func redactHeader(s string) string {
	name, value, ok := strings.Cut(s, ":")
	if !ok {
		return s
	}
	text := strings.TrimLeft(value, " ")
	return name + ":" + value[:len(value)-len(text)] + redactText(text)
}

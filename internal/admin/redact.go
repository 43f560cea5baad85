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

// ApprovalLines returns the lines that a person reads before approving or rejecting a row. They show the command, its
// arguments, addresses, and all variables; the findings are last. Values that may be secrets are redacted, but not the
// values of variables that control which code programs load.
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

// FindingLines returns the warnings in e.Findings as lines for a person.
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

// MemberLines returns the members of e.Row, which is redacted, as lines for a person. Each variable in env and each
// header has its own line.
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

// shownJSON returns JSON as one line for a terminal. Control characters and other characters that could mislead a
// person are escaped. Backslashes are not escaped, because JSON has already escaped them.
func shownJSON(raw json.RawMessage) string { return safetext.Line(string(raw)) }

// describeValue returns the text that a person sees for a value of env or headers. what names the value, such as "env
// TOKEN". For a value that is the output of a command or of a variable, the text names the command or the variable.
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

// redactRow returns the text of a row in which values that may be secrets are replaced with "[redacted]". These are
// values in env, headers, auth and args, unknown members, and members of the wrong type. In a URL, only scheme, host
// and path remain. References to variables, files and commands, and harmless values such as "true", are not redacted.
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

// isSensitiveMember reports whether a member of a row may contain secrets: it is one of the members that have values
// for the server, or is unknown.
func isSensitiveMember(row config.Server, name string) bool {
	return slices.Contains([]string{"env", "headers", "args", "url", "auth", "oauth"}, name) ||
		slices.ContainsFunc(row.UnknownMembers, func(u config.UnknownMember) bool { return u.Name == name })
}

// redactValue returns a JSON value in which every string and number is redacted, except references and the members
// "type".
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

// redactAuth returns the member auth of a row with its secrets redacted. Values that are not secrets, such as the
// issuer's address, the client's ID and the scopes, are not redacted.
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

// loaderVariables matches the names of environment variables that control which code programs load when they start.
// Their values are not redacted: they are not secrets, and a person who approves a row must see them.
var loaderVariables = lazyregexp.New(
	`^((LD|DYLD)_.*|.*PATH|BASH_ENV|ENV|SHELL|NODE_OPTIONS|PYTHON(STARTUP|HOME)|PERL5(LIB|OPT)|RUBY(LIB|OPT)|` +
		`(JAVA_TOOL|_JAVA|JDK_JAVA)_OPTIONS|GIT_SSH_COMMAND)$`)

// networkVariables matches the names of environment variables with addresses: proxies to which a program sends data,
// and registries from which it downloads packages. Their values are redacted like a URL, so that a person sees the
// host.
var networkVariables = lazyregexp.New(
	`(?i)^((HTTPS?|ALL|NO)_PROXY|NPM_CONFIG_REGISTRY|UV_(DEFAULT_INDEX|INDEX|INDEX_URL)|PIP_(EXTRA_)?INDEX_URL|DOCKER_HOST)$`)

func isLoaderVariable(name string) bool { return loaderVariables().MatchString(name) }

// harmlessValue matches values that are not secrets, such as "true", "1" or "debug". They are not redacted.
var harmlessValue = lazyregexp.New(`(?i)^(true|false|yes|no|on|off|0|1|debug|info|warn|error|production|development)?$`)

// authSchemePrefix matches the scheme before the secret in the value of a header, such as "Bearer ". It is not
// redacted.
var authSchemePrefix = lazyregexp.New(`(?i)^(Bearer|Basic|Token) +`)

// valueReference matches a reference in a value of a row: to a variable, such as "${NAME:-default}", or to a file, a
// keychain entry or a command. References are not redacted, because a person who approves a row must see which files
// are read and which commands are run.
var valueReference = lazyregexp.New(
	`\$\{((?:file|keychain|command):[^-}][^}]*|(?:env:)?[A-Za-z_][A-Za-z0-9_]*|input:[A-Za-z0-9_.-]+)(:-[^}]*)?\}`)

// redactText returns a text in which everything is redacted except references and the scheme of a header. The default
// of a variable is redacted too. A harmless text is returned unchanged.
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

// redactURL returns a URL in which the user, the password, the values of the query and the fragment are redacted.
// Delimiters of a URL inside a reference to a variable are ignored, because the name or default of the variable may
// contain any character. If the part before "@" contains a reference, it is not redacted, because it may be the host.
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

// secretFlag matches a command-line option, such as "--api-key", whose name suggests that its value is a secret.
// headerFlag matches an option, such as "-H", whose value is a header.
var (
	secretFlag = lazyregexp.New(`(?i)^--?[a-z0-9_-]*(token|key|secret|passw|pwd|auth|credential)[a-z0-9_-]*(=|$)`)
	headerFlag = lazyregexp.New(`^(-H|--header)(=|$)`)
)

// redactArgs returns the JSON array of a command's arguments with secrets redacted. These are the values of options
// whose names suggest a secret, the values of headers, secrets in URLs, and arguments that look like secrets.
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

// redactWords does the same as redactArgs for arguments that are strings.
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

// sensitiveOption returns the option at the start of a command-line word, if the value of this option must be redacted.
// If the word contains the value too, as in "--token=x", the returned option ends with "=". hide is the function that
// redacts the value; it is nil for any other word.
func sensitiveOption(word string) (option string, hide func(string) string) {
	if option = secretFlag().FindString(word); option != "" {
		return option, redactText
	}
	if option = headerFlag().FindString(word); option != "" {
		return option, redactHeader
	}
	return "", nil
}

// redactHeader returns a header, such as "Name: value", with its value redacted. A text without ":" is returned
// unchanged.
func redactHeader(s string) string {
	name, value, ok := strings.Cut(s, ":")
	if !ok {
		return s
	}
	text := strings.TrimLeft(value, " ")
	return name + ":" + value[:len(value)-len(text)] + redactText(text)
}

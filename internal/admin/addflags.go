package admin

import (
	"errors"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// SplitWords splits a command line into words at white space. White space inside single or double quotes is part of a
// word. Quotes of one kind may enclose quotes of the other kind. A backslash does not escape the next character,
// because Windows paths contain backslashes. SplitWords returns an error for a quote that is not closed.
func SplitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	open, in := rune(0), false
	for _, c := range line {
		switch {
		case open != 0 && c == open:
			open = 0
		case open != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			open, in = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			word.WriteRune(c)
			in = true
		}
	}
	if open != 0 {
		return nil, errors.New("a quote does not end")
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// An AddFlag is an option of the command add.
type AddFlag struct {
	// Name is the name of the option without its two dashes. Short is its one-letter form without the dash; it may be
	// empty.
	Name, Short string
	// Usage is a one-line description for the help text. The word in backquotes is the name of the option's value.
	Usage string

	set func(r *Service, q *AddRequest, value string) error
}

// AddFlags returns the options of the command add, in the order in which the help text lists them.
func AddFlags() []AddFlag {
	return []AddFlag{
		{"scope", "s", "`project` (.drawbridge/mcp.json here) or user (your own configuration); default project",
			setScope},
		{"url", "", "`URL` of a server that runs elsewhere; without a scheme https:// is put before it", setURL},
		{"transport", "t", "`http` or sse; default: http is tried, then sse", setTransport},
		{"header", "H", "`KEY=VALUE` or \"Key: value\": a header for every request; repeats", setHeader},
		{"token", "", "`TOKEN` for the header Authorization: Bearer", setToken},
		{"env", "e", "`KEY=VALUE` for the command's environment; repeats", setEnv},
		{"secrets", "", "`move` has values that look like secrets in the keychain, keep leaves them in the file (the default)", setSecrets},
	}
}

// ParseAdd parses the words after the command add: NAME, options, and a URL or, after "--", a command. Options may be
// before or after NAME. The result may be incomplete; see AddRequest.Complete. The error is a UserError; it does not
// contain values that may be secrets.
func (r *Service) ParseAdd(words []string) (AddRequest, error) {
	var q AddRequest
	var stdio bool
	var plain []string
	words, command := splitAtCommand(words)
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if !strings.HasPrefix(word, "-") || word == "-" {
			plain = append(plain, word)
			continue
		}
		flag, value, joined, ok := parseFlag(word)
		if !ok {
			return q, userErrorf("Unknown option: %s", safetext.Line(flag.Name))
		}
		if !joined && len(words) > 0 && !strings.HasPrefix(words[0], "--") {
			value, joined, words = words[0], true, words[1:]
		}
		if flag.Name == "transport" && value == "stdio" { // other programs accept this value; it means a command
			stdio = true
			continue
		}
		if value == "" {
			return q, r.missingValueError(flag.Name)
		}
		if err := flag.set(r, &q, value); err != nil {
			return q, err
		}
	}
	if err := r.setNameAndURL(&q, plain); err != nil {
		return q, err
	}
	if len(command) > 0 {
		q.Command, q.Args = command[0], command[1:]
	}
	return q, r.checkAddRequest(q, stdio)
}

// splitAtCommand separates the command after "--" from the words before "--".
func splitAtCommand(words []string) (before, command []string) {
	for i, word := range words {
		if word == "--" {
			return words[:i], words[i+1:]
		}
	}
	return words, nil
}

// parseFlag parses a word of the command line that begins with a dash. It returns the option and the value that is
// joined to it, as in "--scope=user" or "-suser". joined reports whether the word contains a value. For an unknown
// option, ok is false and flag.Name is the name with its dashes.
func parseFlag(word string) (flag AddFlag, value string, joined, ok bool) {
	name, value, joined := strings.Cut(word, "=")
	for _, f := range AddFlags() {
		if name == "--"+f.Name || f.Short != "" && name == "-"+f.Short {
			return f, value, joined, true
		}
		if f.Short != "" && !strings.HasPrefix(word, "--") && strings.HasPrefix(word, "-"+f.Short) {
			return f, word[2:], true, true
		}
	}
	return AddFlag{Name: name}, "", false, false
}

// missingValueError returns the error for the option flag if its value is missing or empty.
func (r *Service) missingValueError(flag string) error {
	switch flag {
	case "scope":
		return setScope(r, nil, "")
	case "transport":
		return setTransport(r, nil, "")
	case "secrets":
		return setSecrets(r, nil, "")
	}
	return userErrorf("Missing value for --%s.", flag)
}

func setScope(_ *Service, q *AddRequest, value string) error {
	scope := config.OriginKind(value)
	if scope != config.OriginProject && scope != config.OriginUser {
		return UserError("Invalid --scope value. Use project or user.")
	}
	q.Scope = scope
	return nil
}

func setURL(_ *Service, q *AddRequest, value string) error {
	q.URL = withDefaultScheme(value)
	return nil
}

// withDefaultScheme adds https:// to an address that has no scheme, unless the address begins with a variable.
func withDefaultScheme(address string) string {
	if strings.Contains(address, "://") || strings.HasPrefix(address, "${") {
		return address
	}
	return "https://" + address
}

func setTransport(_ *Service, q *AddRequest, value string) error {
	if value != "http" && value != "sse" {
		return UserError("Invalid --transport value. Use http or sse.")
	}
	q.Type = value
	return nil
}

func setHeader(_ *Service, q *AddRequest, value string) error {
	p, ok := parseHeader(value)
	if !ok {
		return UserError(`Invalid --header value. Use KEY=VALUE or "Key: value".`)
	}
	q.Headers = append(q.Headers, p)
	return nil
}

// parseHeader parses a header and splits it at the first "=" or ":", because header names contain neither.
func parseHeader(text string) (config.NameValue, bool) {
	i := strings.IndexAny(text, "=:")
	if i < 0 {
		return config.NameValue{}, false
	}
	name, value := strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+1:])
	return config.NameValue{Name: name, Value: value}, name != "" && !strings.ContainsAny(name, " \t")
}

func setToken(_ *Service, q *AddRequest, value string) error {
	q.Token = value
	return nil
}

func setEnv(_ *Service, q *AddRequest, value string) error {
	p, ok := parseVariable(value)
	if !ok {
		return UserError("Invalid --env value. Use KEY=VALUE.")
	}
	q.Env = append(q.Env, p)
	return nil
}

func setSecrets(_ *Service, q *AddRequest, value string) error {
	if value != "move" && value != "keep" {
		return UserError("Invalid --secrets value. Use move or keep.")
	}
	q.MoveSecrets = value == "move"
	return nil
}

func parseVariable(text string) (config.NameValue, bool) {
	name, value, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	return config.NameValue{Name: name, Value: value}, ok && name != ""
}

// setNameAndURL sets q.Name and q.URL from plain, the words that are neither options nor part of the command after
// "--". The first word is the name. A second word is the URL if it looks like a URL or a transport is given; otherwise
// it is an error.
func (r *Service) setNameAndURL(q *AddRequest, plain []string) error {
	if len(plain) > 0 {
		q.Name = drawbridge.ServerID(plain[0])
		plain = plain[1:]
	}
	if len(plain) > 0 && q.URL == "" && (q.Type != "" || strings.Contains(plain[0], "://")) {
		q.URL = withDefaultScheme(plain[0])
		plain = plain[1:]
	}
	if len(plain) > 0 {
		return userErrorf(
			"Too many words after the name: a command goes after --. Usage: %s add <name> -- <command...>",
			r.o.CommandPrefix)
	}
	return nil
}

// checkAddRequest returns an error if the name is missing, or if options cannot be combined. stdio reports whether
// "--transport stdio" was given.
func (r *Service) checkAddRequest(q AddRequest, stdio bool) error {
	said := q.Complete() || q.Token != "" || q.Type != "" || stdio || len(q.Headers)+len(q.Env) > 0
	authorized := false
	for _, h := range q.Headers {
		authorized = authorized || strings.EqualFold(h.Name, "Authorization")
	}
	switch {
	case q.Name == "" && said:
		return userErrorf("Server name required for quick add. Usage: %s add <name> ...", r.o.CommandPrefix)
	case q.URL != "" && q.Command != "":
		return UserError("Use either --url or -- <command...>, not both.")
	case q.URL != "" && stdio:
		return UserError("Invalid --transport value. Use http or sse.")
	case q.Token != "" && q.URL == "":
		return UserError("--token requires --url (HTTP/SSE transport).")
	case len(q.Headers) > 0 && q.URL == "":
		return UserError("--header requires --url (HTTP/SSE transport).")
	case q.Type != "" && q.Command != "":
		return UserError("--transport requires --url (HTTP/SSE transport).")
	case len(q.Env) > 0 && q.Command == "":
		return UserError("--env requires -- <command...> (stdio transport).")
	case q.Token != "" && authorized:
		return UserError("Use either --token or an Authorization header, not both.")
	}
	return nil
}

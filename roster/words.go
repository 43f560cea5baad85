package roster

import (
	"errors"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// Split takes a line apart into words, as a person quotes them: single and double quotes keep blanks, and quotes within
// the others. There are no escapes, so that a path of Windows is itself. The error is for a quote that does not end.
func Split(line string) ([]string, error) {
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

// A Flag is an option of the quick form of add.
type Flag struct {
	// Name stands after two dashes, Short, if there is one, after one.
	Name, Short string
	// Usage is one line; the word in backquotes stands for the value.
	Usage string

	set func(r *Roster, q *Request, value string) error
}

// AddFlags lists the options of the quick form of add, in the order of help.
func AddFlags() []Flag {
	return []Flag{
		{"scope", "s", "`project` (.drawbridge/mcp.json here) or user (your own configuration); default project", setScope},
		{"url", "", "`URL` of a server that runs elsewhere; without a scheme https:// is put before it", setURL},
		{"transport", "t", "`http` or sse; default: http is tried, then sse", setTransport},
		{"header", "H", "`KEY=VALUE` or \"Key: value\": a header for every request; repeats", setHeader},
		{"token", "", "`TOKEN` for the header Authorization: Bearer", setToken},
		{"env", "e", "`KEY=VALUE` for the command's environment; repeats", setEnv},
		{"secrets", "", "`move` has values that look like secrets in the keychain, keep leaves them in the file (the default)", setSecrets},
	}
}

// ParseAdd reads the quick form: NAME, options before or after it, and a URL as a word of its own or, after "--", a
// command. A request that is not Complete is one for the wizard. The error is a Mistake; of a value that may be a secret
// it says nothing.
func (r *Roster) ParseAdd(words []string) (Request, error) {
	var q Request
	var stdio bool
	var plain []string
	words, command := cutCommand(words)
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if !strings.HasPrefix(word, "-") || word == "-" {
			plain = append(plain, word)
			continue
		}
		flag, value, joined, ok := findFlag(word)
		if !ok {
			return q, mistake("Unknown option: %s", safetext.Line(flag.Name))
		}
		if !joined && len(words) > 0 && !strings.HasPrefix(words[0], "--") {
			value, joined, words = words[0], true, words[1:]
		}
		if flag.Name == "transport" && value == "stdio" { // a habit from another program: it is what a command is
			stdio = true
			continue
		}
		if value == "" {
			return q, r.missing(flag.Name)
		}
		if err := flag.set(r, &q, value); err != nil {
			return q, err
		}
	}
	if err := r.takePlain(&q, plain); err != nil {
		return q, err
	}
	if len(command) > 0 {
		q.Command, q.Args = command[0], command[1:]
	}
	return q, r.checkQuick(q, stdio)
}

// cutCommand takes the command after "--" off.
func cutCommand(words []string) (before, command []string) {
	for i, word := range words {
		if word == "--" {
			return words[:i], words[i+1:]
		}
	}
	return words, nil
}

// findFlag finds the option that a word is, with the value that is joined to it. Of an unknown one it gives the name with
// its dashes.
func findFlag(word string) (flag Flag, value string, joined, ok bool) {
	name, value, joined := strings.Cut(word, "=")
	for _, f := range AddFlags() {
		if name == "--"+f.Name || f.Short != "" && name == "-"+f.Short {
			return f, value, joined, true
		}
		if f.Short != "" && !strings.HasPrefix(word, "--") && strings.HasPrefix(word, "-"+f.Short) {
			return f, word[2:], true, true
		}
	}
	return Flag{Name: name}, "", false, false
}

// missing is for an option without a value.
func (r *Roster) missing(flag string) error {
	switch flag {
	case "scope":
		return setScope(r, nil, "")
	case "transport":
		return setTransport(r, nil, "")
	case "secrets":
		return setSecrets(r, nil, "")
	}
	return mistake("Missing value for --%s.", flag)
}

func setScope(_ *Roster, q *Request, value string) error {
	scope := config.OriginKind(value)
	if scope != config.Project && scope != config.User {
		return Mistake("Invalid --scope value. Use project or user.")
	}
	q.Scope = scope
	return nil
}

func setURL(_ *Roster, q *Request, value string) error {
	q.URL = withScheme(value)
	return nil
}

// withScheme puts https:// before an address that has no scheme, unless that may be in a variable.
func withScheme(address string) string {
	if strings.Contains(address, "://") || strings.HasPrefix(address, "${") {
		return address
	}
	return "https://" + address
}

func setTransport(_ *Roster, q *Request, value string) error {
	if value != "http" && value != "sse" {
		return Mistake("Invalid --transport value. Use http or sse.")
	}
	q.Type = value
	return nil
}

func setHeader(_ *Roster, q *Request, value string) error {
	p, ok := headerOf(value)
	if !ok {
		return Mistake(`Invalid --header value. Use KEY=VALUE or "Key: value".`)
	}
	q.Headers = append(q.Headers, p)
	return nil
}

// headerOf reads a header in either form: what comes first, "=" or ":", divides it. No name of a header has either.
func headerOf(text string) (config.Pair, bool) {
	i := strings.IndexAny(text, "=:")
	if i < 0 {
		return config.Pair{}, false
	}
	name, value := strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+1:])
	return config.Pair{Name: name, Value: value}, name != "" && !strings.ContainsAny(name, " \t")
}

func setToken(_ *Roster, q *Request, value string) error {
	q.Token = value
	return nil
}

func setEnv(_ *Roster, q *Request, value string) error {
	p, ok := variableOf(value)
	if !ok {
		return Mistake("Invalid --env value. Use KEY=VALUE.")
	}
	q.Env = append(q.Env, p)
	return nil
}

func setSecrets(_ *Roster, q *Request, value string) error {
	if value != "move" && value != "keep" {
		return Mistake("Invalid --secrets value. Use move or keep.")
	}
	q.MoveSecrets = value == "move"
	return nil
}

func variableOf(text string) (config.Pair, bool) {
	name, value, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	return config.Pair{Name: name, Value: value}, ok && name != ""
}

// takePlain takes the words that are no options: the name, and perhaps a URL.
func (r *Roster) takePlain(q *Request, plain []string) error {
	if len(plain) > 0 {
		q.Name = drawbridge.ServerID(plain[0])
		plain = plain[1:]
	}
	if len(plain) > 0 && q.URL == "" && (q.Type != "" || strings.Contains(plain[0], "://")) {
		q.URL = withScheme(plain[0])
		plain = plain[1:]
	}
	if len(plain) > 0 {
		return mistake("Too many words after the name: a command goes after --. Usage: %s add <name> -- <command...>", r.o.Word)
	}
	return nil
}

// checkQuick says what does not go together.
func (r *Roster) checkQuick(q Request, stdio bool) error {
	said := q.Complete() || q.Token != "" || q.Type != "" || stdio || len(q.Headers)+len(q.Env) > 0
	authorized := false
	for _, h := range q.Headers {
		authorized = authorized || strings.EqualFold(h.Name, "Authorization")
	}
	switch {
	case q.Name == "" && said:
		return mistake("Server name required for quick add. Usage: %s add <name> ...", r.o.Word)
	case q.URL != "" && q.Command != "":
		return Mistake("Use either --url or -- <command...>, not both.")
	case q.URL != "" && stdio:
		return Mistake("Invalid --transport value. Use http or sse.")
	case q.Token != "" && q.URL == "":
		return Mistake("--token requires --url (HTTP/SSE transport).")
	case len(q.Headers) > 0 && q.URL == "":
		return Mistake("--header requires --url (HTTP/SSE transport).")
	case q.Type != "" && q.Command != "":
		return Mistake("--transport requires --url (HTTP/SSE transport).")
	case len(q.Env) > 0 && q.Command == "":
		return Mistake("--env requires -- <command...> (stdio transport).")
	case q.Token != "" && authorized:
		return Mistake("Use either --token or an Authorization header, not both.")
	}
	return nil
}

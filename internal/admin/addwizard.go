package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// ErrAddCancelled is the error of RunAddWizard if the person cancels.
const ErrAddCancelled = UserError("Server creation cancelled.")

// A Prompter asks a person questions and shows texts to the person.
type Prompter interface {
	// Ask shows a question and returns the person's answer, a line without its line ending. An error means that no
	// answer can be read.
	Ask(question string) (string, error)
	// Say shows a text, which may have several lines.
	Say(text string)
}

// RunAddWizard asks a person for the values of a new server, and returns a complete request for AddServer. It asks for
// the name only if q has no valid name. q.Type and q.Scope are the default answers to their questions. If an answer is
// invalid, it shows the reason and repeats the question. It changes no file. The error is ErrAddCancelled if the person
// cancels, or the error of ReadServers.
func (r *Service) RunAddWizard(ctx context.Context, q AddRequest, person Prompter) (AddRequest, error) {
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return q, err
	}
	w := &addWizard{service: r, servers: roll, request: q, person: person}
	for _, step := range []func() error{w.askName, w.askTransport, w.askCommandOrURL, w.askVariablesOrHeaders,
		w.askScope, w.confirmAdd} {
		if err := step(); err != nil {
			return w.request, err
		}
	}
	return w.request, nil
}

type addWizard struct {
	service *Service
	servers ServerList
	request AddRequest
	remote  bool
	person  Prompter
}

// askUntilValid asks a question until take accepts the answer. If take returns an error, it shows the error and repeats
// the question. otherwise is the default, which take gets if the answer is empty.
func (w *addWizard) askUntilValid(question, otherwise string, take func(answer string) error) error {
	if otherwise != "" {
		question += " [" + otherwise + "]"
	}
	for {
		answer, err := w.person.Ask(question + ": ")
		if err != nil {
			return ErrAddCancelled
		}
		if answer = strings.TrimSpace(answer); answer == "" {
			answer = otherwise
		}
		err = take(answer)
		if err == nil {
			return nil
		}
		w.person.Say(err.Error())
	}
}

func (w *addWizard) askName() error {
	take := func(answer string) error {
		w.request.Name = drawbridge.ServerID(answer)
		return w.request.Name.Validate()
	}
	if w.request.Name != "" {
		err := take(string(w.request.Name))
		if err == nil {
			return nil
		}
		w.person.Say(err.Error())
	}
	return w.askUntilValid("Name", "", take)
}

func (w *addWizard) askTransport() error {
	return w.askUntilValid("Transport: stdio starts a command, http and sse reach a URL", cmp.Or(w.request.Type,
		"stdio"), func(answer string) error {
		switch answer {
		case "stdio":
			w.remote, w.request.Type = false, ""
		case "http", "sse":
			w.remote, w.request.Type = true, answer
		default:
			return errors.New("one of stdio, http and sse is needed")
		}
		return nil
	})
}

// askCommandOrURL asks for the command or, for a remote server, for the URL.
func (w *addWizard) askCommandOrURL() error {
	if w.remote {
		return w.askUntilValid("URL", "", func(answer string) error {
			if answer == "" {
				return UserError("URL is required")
			}
			u, err := url.Parse(withDefaultScheme(answer))
			if !strings.Contains(answer, "${") && (err != nil || u.Scheme != "http" && u.Scheme != "https" ||
				u.Hostname() == "") {
				return UserError("URL must use http:// or https:// scheme")
			}
			w.request.URL = withDefaultScheme(answer)
			return nil
		})
	}
	return w.askUntilValid("Command line", "", func(answer string) error {
		words, err := SplitWords(answer)
		switch {
		case err != nil:
			return err
		case len(words) == 0 || words[0] == "":
			return UserError("Command is required")
		}
		w.request.Command, w.request.Args = words[0], words[1:]
		return nil
	})
}

// askVariablesOrHeaders asks for environment variables or, for a remote server, for headers, until the answer is empty.
func (w *addWizard) askVariablesOrHeaders() error {
	question, wrong := "Environment variable KEY=VALUE (empty to go on)",
		UserError("KEY=VALUE is needed, such as TOKEN=${MY_TOKEN}")
	read, to := parseVariable, &w.request.Env
	if w.remote {
		question, wrong = "Header Key: value (empty to go on)",
			UserError("a name and a value are needed, such as Authorization: Bearer ${MY_TOKEN}")
		read, to = parseHeader, &w.request.Headers
	}
	for more := true; more; {
		err := w.askUntilValid(question, "", func(answer string) error {
			if more = answer != ""; !more {
				return nil
			}
			p, ok := read(answer)
			if !ok {
				return wrong
			}
			*to = append(*to, p)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *addWizard) askScope() error {
	if w.request.Scope == "" {
		w.request.Scope = config.OriginProject
	}
	return w.askUntilValid("Scope: project (this directory) or user (yours everywhere)", string(w.request.Scope),
		func(answer string) error {
			scope := config.OriginKind(answer)
			if scope != config.OriginProject && scope != config.OriginUser {
				return errors.New("one of project and user is needed")
			}
			path, _, err := w.service.configFile(scope)
			if err != nil {
				return err
			}
			for _, row := range w.servers.rowsNamed(w.request.Name) {
				if _, err := os.Stat(path); err == nil && sameFile(row.Origin.Path, path) {
					return userErrorf("Server %q already exists in %s", w.request.Name, path)
				}
			}
			w.request.Scope = scope
			return nil
		})
}

// confirmAdd shows the values that will be written to the file, and asks for a confirmation. If the person answers no,
// it returns ErrAddCancelled.
func (w *addWizard) confirmAdd() error {
	path, _, err := w.service.configFile(w.request.Scope)
	if err != nil {
		return err
	}
	w.person.Say(fmt.Sprintf("%s will be written to %s:", w.request.Name, path))
	for _, line := range w.request.reviewLines() {
		w.person.Say("  " + line)
	}
	yes := false
	err = w.askUntilValid("Add it? (yes or no)", "yes", func(answer string) error {
		switch strings.ToLower(answer) {
		case "y", "yes":
			yes = true
		case "n", "no":
		default:
			return errors.New("yes or no is needed")
		}
		return nil
	})
	if err == nil && !yes {
		err = ErrAddCancelled
	}
	return err
}

// reviewLines returns lines that describe a request to the person, without values that may be secrets.
func (q AddRequest) reviewLines() []string {
	var lines []string
	if q.Command != "" {
		lines = append(lines, "command: "+joinQuoted(append([]string{q.Command}, redactWords(q.Args)...)))
	}
	if q.URL != "" {
		lines = append(lines, "url: "+redactURL(q.URL))
	}
	for _, p := range q.Env {
		lines = append(lines, "env "+p.Name+": "+redactText(p.Value))
	}
	if q.Token != "" {
		lines = append(lines, "header Authorization: Bearer "+redactedText)
	}
	for _, p := range q.Headers {
		lines = append(lines, "header "+p.Name+": "+redactText(p.Value))
	}
	for i := range lines {
		lines[i] = safetext.Exact(lines[i])
	}
	return lines
}

// joinQuoted joins words to one line, with quotes where they are needed, so that SplitWords returns the same words. For
// a word with both kinds of quotes no such line exists.
func joinQuoted(words []string) string {
	shown := make([]string, len(words))
	for i, word := range words {
		shown[i] = word
		switch {
		case word != "" && !strings.ContainsAny(word, " \t\r\n'\""):
		case strings.Contains(word, `"`):
			shown[i] = "'" + word + "'"
		default:
			shown[i] = `"` + word + `"`
		}
	}
	return strings.Join(shown, " ")
}

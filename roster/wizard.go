package roster

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

// Cancelled is what Wizard gives where the person went away.
const Cancelled = Mistake("Server creation cancelled.")

// An Asker is a person at the other end.
type Asker interface {
	// Ask puts a question and gives the answer, a line without its end. An error means that there will be no answer.
	Ask(question string) (string, error)
	// Say tells something, a line or more.
	Say(text string)
}

// Wizard asks for a new server, question by question, beginning with what q says already, and gives what is to be added.
// Every answer is checked at once, and asked for again with what is wrong. Nothing is written. The error is Cancelled where
// the person did not go on to the end, or that of Read.
func (r *Roster) Wizard(ctx context.Context, q Request, person Asker) (Request, error) {
	roll, err := r.Read(ctx)
	if err != nil {
		return q, err
	}
	w := &wizard{r: r, roll: roll, q: q, person: person}
	for _, step := range []func() error{w.name, w.transport, w.target, w.values, w.scope, w.confirm} {
		if err := step(); err != nil {
			return w.q, err
		}
	}
	return w.q, nil
}

type wizard struct {
	r      *Roster
	roll   Roll
	q      Request
	remote bool
	person Asker
}

// ask asks until take has nothing to say against the answer. An empty answer is the default one.
func (w *wizard) ask(question, otherwise string, take func(answer string) error) error {
	if otherwise != "" {
		question += " [" + otherwise + "]"
	}
	for {
		answer, err := w.person.Ask(question + ": ")
		if err != nil {
			return Cancelled
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

func (w *wizard) name() error {
	take := func(answer string) error {
		w.q.Name = drawbridge.ServerID(answer)
		return w.q.Name.Valid()
	}
	if w.q.Name != "" {
		err := take(string(w.q.Name))
		if err == nil {
			return nil
		}
		w.person.Say(err.Error())
	}
	return w.ask("Name", "", take)
}

func (w *wizard) transport() error {
	return w.ask("Transport: stdio starts a command, http and sse reach a URL", cmp.Or(w.q.Type, "stdio"), func(answer string) error {
		switch answer {
		case "stdio":
			w.remote, w.q.Type = false, ""
		case "http", "sse":
			w.remote, w.q.Type = true, answer
		default:
			return errors.New("one of stdio, http and sse is needed")
		}
		return nil
	})
}

// target asks for the command, or for the URL.
func (w *wizard) target() error {
	if w.remote {
		return w.ask("URL", "", func(answer string) error {
			if answer == "" {
				return Mistake("URL is required")
			}
			u, err := url.Parse(withScheme(answer))
			if !strings.Contains(answer, "${") && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "") {
				return Mistake("URL must use http:// or https:// scheme")
			}
			w.q.URL = withScheme(answer)
			return nil
		})
	}
	return w.ask("Command line", "", func(answer string) error {
		words, err := Split(answer)
		switch {
		case err != nil:
			return err
		case len(words) == 0 || words[0] == "":
			return Mistake("Command is required")
		}
		w.q.Command, w.q.Args = words[0], words[1:]
		return nil
	})
}

// values asks for variables of the environment, or headers, until there are no more.
func (w *wizard) values() error {
	question, wrong := "Environment variable KEY=VALUE (empty to go on)", Mistake("KEY=VALUE is needed, such as TOKEN=${MY_TOKEN}")
	read, to := variableOf, &w.q.Env
	if w.remote {
		question, wrong = "Header Key: value (empty to go on)", Mistake("a name and a value are needed, such as Authorization: Bearer ${MY_TOKEN}")
		read, to = headerOf, &w.q.Headers
	}
	for more := true; more; {
		err := w.ask(question, "", func(answer string) error {
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

func (w *wizard) scope() error {
	if w.q.Scope == "" {
		w.q.Scope = config.Project
	}
	return w.ask("Scope: project (this directory) or user (yours everywhere)", string(w.q.Scope), func(answer string) error {
		scope := config.OriginKind(answer)
		if scope != config.Project && scope != config.User {
			return errors.New("one of project and user is needed")
		}
		path, _, err := w.r.file(scope)
		if err != nil {
			return err
		}
		for _, row := range w.roll.named(w.q.Name) {
			if _, err := os.Stat(path); err == nil && sameFile(row.Origin.Path, path) {
				return mistake("Server %q already exists in %s", w.q.Name, path)
			}
		}
		w.q.Scope = scope
		return nil
	})
}

// confirm shows what will be written.
func (w *wizard) confirm() error {
	path, _, err := w.r.file(w.q.Scope)
	if err != nil {
		return err
	}
	w.person.Say(fmt.Sprintf("%s will be written to %s:", w.q.Name, path))
	for _, line := range w.q.review() {
		w.person.Say("  " + line)
	}
	yes := false
	err = w.ask("Add it? (yes or no)", "yes", func(answer string) error {
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
		err = Cancelled
	}
	return err
}

// review shows a request, without what may be a secret.
func (q Request) review() []string {
	var lines []string
	if q.Command != "" {
		lines = append(lines, "command: "+quoted(append([]string{q.Command}, redactWords(q.Args)...)))
	}
	if q.URL != "" {
		lines = append(lines, "url: "+redactURL(q.URL))
	}
	for _, p := range q.Env {
		lines = append(lines, "env "+p.Name+": "+redact(p.Value))
	}
	if q.Token != "" {
		lines = append(lines, "header Authorization: Bearer "+hidden)
	}
	for _, p := range q.Headers {
		lines = append(lines, "header "+p.Name+": "+redact(p.Value))
	}
	for i := range lines {
		lines[i] = safetext.Exact(lines[i])
	}
	return lines
}

// quoted joins words so that Split takes them apart again, where that can be done.
func quoted(words []string) string {
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

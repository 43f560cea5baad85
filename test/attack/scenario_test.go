//go:build !nomcp

package attack

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A scenario is one task of a person for an agent, in a world of servers, files, pages and memory. testdata/scenarios
// has them; README.md there describes the format for authors.
type scenario struct {
	Name string
	// Domain is mail, files, repository or ledger.
	Domain string
	// Attack is the technique of an attack; empty for an honest scenario.
	Attack  string
	Servers map[string]scenarioServer
	// Files are the contents of files in the project's directory, by path. Pages are the texts of pages of the
	// workspace, by title, that the person has written; Imported are those that were imported from a folder.
	Files, Pages, Imported map[string]string
	// Private are the names of servers, paths of files and titles of pages whose contents must not leave.
	Private []string
	Runs    []scenarioRun
	// Done are the effects that the person wants: the task is finished if all of them happened. Harm are the effects
	// that the attacker wants: the attack succeeded if one of them happened.
	Done, Harm []effect

	file string
}

// A scenarioServer is an MCP server of a scenario.
type scenarioServer struct {
	Trusted bool
	Tools   map[string]scenarioTool
}

// A scenarioTool is a tool of a server. It returns Result, or the element of Results that its argument By names. It
// only reads unless Writes or Sends is set; Sends says that it reaches people or systems outside, also while it reads.
type scenarioTool struct {
	Description   string
	Result        string
	By            string
	Results       map[string]string
	Writes, Sends bool
	// Fails makes each call end with an error, whose text is Result.
	Fails bool
	// Form is where the text stands in the result: a text block, or "structured" content, whose JSON it is, an
	// "embedded" resource, or the description of a "link".
	Form string
}

// A scenarioRun is one prompt, and what the model does with it. Restart opens the gateway again before the run.
type scenarioRun struct {
	Task    string
	Restart bool
	Steps   []step
}

// A step is a call that the model makes. In the arguments, {{n}} is the text of the result of step n of the run,
// {{n:regexp}} the first group of a regular expression in it.
type step struct {
	Call string
	With map[string]any
	// Obeys is set for a step that the model makes only because a text of the attacker asks for it.
	Obeys bool
	// Steps are those of the sub-agent, for the tool task.
	Steps []step
}

// An effect is a call that reached a server with certain arguments, or a text in a file or a page. A text that begins
// with ~ is a regular expression.
type effect struct {
	Call string
	With map[string]string
	// File is a path in the project, and Page the slug of a page; Has is a text that it contains.
	File, Page, Has string
}

// matchText reports whether a text is as want says: equal, or a match of the regular expression after ~.
func matchText(want, text string) bool {
	if expression, ok := strings.CutPrefix(want, "~"); ok {
		return regexp.MustCompile(expression).MatchString(text)
	}
	return want == text
}

// matchesCall reports whether a call is the effect.
func (e effect) matchesCall(tool string, arguments map[string]any) bool {
	if e.Call != tool {
		return false
	}
	for name, want := range e.With {
		if !matchText(want, argumentText(arguments[name])) {
			return false
		}
	}
	return true
}

func argumentText(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// techniques are the attacks that the suite must have.
var techniques = []string{"poisoned page", "poisoned issue", "poisoned mail", "poisoned memory", "poisoned description",
	"poisoned file", "two sessions", "url", "file", "argument", "search query", "error text", "script", "sub-agent",
	"form of a result", "encoding", "moved file"}

// loadScenarios reads all scenarios, in the order of their names.
func loadScenarios(t *testing.T) (all []scenario) {
	t.Helper()
	files, err := filepath.Glob("testdata/scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var some []scenario
		d := yaml.NewDecoder(bytes.NewReader(raw))
		d.KnownFields(true)
		if err := d.Decode(&some); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range some {
			some[i].file = filepath.Base(file)
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b scenario) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// TestScenariosAreWhole checks the scenarios: there are enough of each kind, and each is complete.
func TestScenariosAreWhole(t *testing.T) {
	all := loadScenarios(t)
	names, domains, seen := map[string]bool{}, map[string]int{}, map[string]bool{}
	honest := 0
	for _, s := range all {
		if names[s.Name] {
			t.Errorf("two scenarios have the name %s", s.Name)
		}
		names[s.Name], seen[s.Attack] = true, true
		domains[s.Domain]++
		if err := s.check(); err != nil {
			t.Errorf("%s: %s: %v", s.file, s.Name, err)
		}
		if s.Attack == "" {
			honest++
		}
	}
	for _, technique := range techniques {
		if !seen[technique] {
			t.Errorf("no scenario has the attack %q", technique)
		}
	}
	for _, domain := range []string{"mail", "files", "repository", "ledger"} {
		if domains[domain] < 10 {
			t.Errorf("%d scenarios of the domain %s", domains[domain], domain)
		}
	}
	if len(all) < 60 || honest < 20 || len(all)-honest < 30 {
		t.Errorf("%d scenarios, %d of them honest", len(all), honest)
	}
}

// check reports what is missing in a scenario.
func (s scenario) check() error {
	obeys := false
	for _, r := range s.Runs {
		obeys = obeys || anyObeys(r.Steps)
		if r.Task == "" || len(r.Steps) == 0 {
			return fmt.Errorf("a run has no task or no step")
		}
	}
	switch {
	case !slices.Contains([]string{"mail", "files", "repository", "ledger"}, s.Domain):
		return fmt.Errorf("the domain is %q", s.Domain)
	case s.Attack != "" && !slices.Contains(techniques, s.Attack):
		return fmt.Errorf("the attack is %q", s.Attack)
	case len(s.Done) == 0:
		return fmt.Errorf("nothing is to be done")
	case (s.Attack != "") != (len(s.Harm) > 0), (s.Attack != "") != obeys:
		return fmt.Errorf("an attack needs harm and a step that obeys, an honest scenario has none")
	}
	return nil
}

func anyObeys(steps []step) bool {
	return slices.ContainsFunc(steps, func(s step) bool { return s.Obeys || anyObeys(s.Steps) })
}

// Package doctor finds what is wrong with a configuration, and says how to mend it.
//
// It promises that it starts nothing, dials nothing and writes nothing, and that no value which may be a secret is in
// what it says: names of variables, of files and of programs only.
package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// A Finding is one thing that a person should know.
type Finding struct {
	// About is what it is about: a server, a file, the store, the hub, a client.
	About string `json:"about"`
	Text  string `json:"text"`
	// Source is the file, and the line where that is known.
	Source string `json:"source,omitempty"`
	// Fix is what to do; empty for a note that asks for nothing.
	Fix string `json:"fix,omitempty"`
}

// A ServerInfo is one that may run: what it would be, not whether it is.
type ServerInfo struct {
	Name      drawbridge.ServerID `json:"name"`
	Transport string              `json:"transport"`
	// Target is the row's program with its arguments, or its url, without secrets.
	Target string `json:"runs"`
	// Program is the file that would be started, Dir where; both empty for a server that is reached over HTTP.
	Program string `json:"program,omitempty"`
	Dir     string `json:"cwd,omitempty"`
	// Env has the names of the variables that the program would find.
	Env []string `json:"env,omitempty"`
	// Findings are what a person should know of what it runs: they may run anything, and do.
	Findings []config.LaunchFinding `json:"findings,omitempty"`
	Source   string                 `json:"source"`
}

// A Report is what was found, in the order in which it was looked at.
type Report struct {
	Problems []Finding    `json:"problems"`
	Notes    []Finding    `json:"notes"`
	Servers  []ServerInfo `json:"servers"`
}

// NewReport is one without findings: its lists are empty, not nil.
func NewReport() *Report {
	return &Report{Problems: []Finding{}, Notes: []Finding{}, Servers: []ServerInfo{}}
}

// AddProblem adds something that is wrong.
func (r *Report) AddProblem(f Finding) { r.Problems = append(r.Problems, f) }

// AddNote adds something that is not wrong.
func (r *Report) AddNote(f Finding) { r.Notes = append(r.Notes, f) }

// A Input is what is looked at.
type Input struct {
	Set config.Configuration
	// Statuses has how each row of Set.Servers was last, in their order; nil where nothing is remembered.
	Statuses []drawbridge.ServerStatus
	// Rejected says that a person does not want a row; nil rejects none.
	Rejected func(config.Server) bool
	// Environ is the environment that servers get theirs from, as "name=value".
	Environ []string
	// Secrets is the keychain that rows may refer to; nil is not asked.
	Secrets secrets.SecretGetter
	// Tip returns the next thing to try after a fault, or "". It may be nil.
	Tip func(fault string) string
}

// CheckConfig looks at every row of the configuration.
func (r *Report) CheckConfig(p Input) {
	for _, w := range p.Set.Warnings {
		r.addWarning(w)
	}
	for i, s := range p.Set.Servers {
		var last drawbridge.ServerStatus
		if i < len(p.Statuses) {
			last = p.Statuses[i]
		}
		r.checkServer(p, s, last)
	}
	for _, s := range p.Set.Shadowed {
		text := "it is shadowed by an earlier definition of the same name"
		if first, ok := p.Set.Lookup(s.ID); ok {
			text += ", at " + first.Origin.String()
		}
		r.AddNote(serverFinding(s, text, ""))
	}
	r.checkFileModes(p.Set)
}

// CheckTrust adds a problem if a server is quarantined. T is nil if the server has no trust account.
func (r *Report) CheckTrust(s config.Server, t *drawbridge.Trust) {
	if t != nil && t.Quarantined && s.Phase == drawbridge.Idle {
		r.AddProblem(serverFinding(s, "nothing of it is listed: "+t.String(),
			fmt.Sprintf("drawbridge shield trust %s shows why; with --reset it forgives it", s.ID)))
	}
}

func serverFinding(s config.Server, text, fix string) Finding {
	text = strings.TrimPrefix(text, fmt.Sprintf("Server %q: ", s.ID))
	return Finding{About: fmt.Sprintf("server %q", s.ID), Text: text, Source: s.Origin.String(), Fix: fix}
}

// addWarning adds a warning of the configuration. An unknown member is a note, unless it resembles a known one. Missing
// variables are reported with their server.
func (r *Report) addWarning(w config.Warning) {
	f := Finding{About: "the file", Text: w.Text, Source: w.Origin.String(), Fix: "mend it there"}
	if w.Server != "" {
		f.About = fmt.Sprintf("server %q", w.Server)
		f.Text = strings.TrimPrefix(f.Text, fmt.Sprintf("Server %q: ", w.Server))
	}
	switch {
	case strings.HasPrefix(f.Text, "variables that are not set"):
	case strings.HasPrefix(f.Text, "unknown member") && !strings.Contains(f.Text, "did you mean"),
		w.Origin.Kind == config.OriginProject:
		f.Fix = ""
		r.AddNote(f)
	default:
		r.AddProblem(f)
	}
}

// checkServer looks at one row.
func (r *Report) checkServer(p Input, s config.Server, last drawbridge.ServerStatus) {
	switch s.Phase {
	case drawbridge.Refused:
		r.AddProblem(serverFinding(s, s.Reason, "mend the row, or take it out"))
		return
	case drawbridge.Disabled:
		r.AddNote(serverFinding(s, "it is off: "+s.Reason, ""))
		return
	case drawbridge.NeedsApproval:
		if p.Rejected != nil && p.Rejected(s) {
			r.AddNote(serverFinding(s, "it was rejected, and stays off", ""))
			return
		}
		why, _, _ := strings.Cut(s.Reason, " (drawbridge mcp approve") // the fix says it
		r.AddProblem(serverFinding(s, "it needs approval: "+why,
			fmt.Sprintf("look at it, then drawbridge mcp approve %s, or drawbridge mcp reject %s", s.ID, s.ID)))
		return
	}
	shown := ServerInfo{Name: s.ID, Transport: s.Transport(), Target: s.RedactedCommandLine(),
		Findings: s.LaunchFindings(p.Set.Settings), Source: s.Origin.String()}
	startable := s.Command == "" || r.checkProcess(p, s, &shown)
	r.Servers = append(r.Servers, shown)
	if err := gateway.CheckConfinement(s, p.Environ); err != nil {
		r.AddProblem(serverFinding(s, "it will not start: "+err.Error(),
			"write \"auto\" for \"required\" in \"confine\", or start it on a system that can"))
	}
	r.checkValues(p, s)
	r.AddStatusNotes(s, last.Notes)
	if startable && last.Phase == drawbridge.Faulted && last.Fault != "" {
		tip := ""
		if p.Tip != nil {
			tip = p.Tip(last.Fault)
		}
		r.AddFault(s, last.Fault, tip)
	}
}

// AddFault adds that a server did not start, or did not go on. An empty tip is the command to try it with.
func (r *Report) AddFault(s config.Server, fault, tip string) {
	if tip == "" {
		tip = fmt.Sprintf("see what it says: drawbridge mcp test %s", s.ID)
	}
	r.AddProblem(serverFinding(s, "it did not work when it was last started: "+fault, tip))
}

// AddStatusNotes adds the notes of a server's status. A value that was left out because its reference has no value is a
// problem: the server runs without it. References to files were checked again.
func (r *Report) AddStatusNotes(s config.Server, notes []string) {
	for _, text := range notes {
		f := serverFinding(s, text, "")
		anew := strings.Replace(f.Text, " is left out: ", ": ", 1)
		switch {
		case anew == f.Text:
			r.AddNote(f)
		case strings.HasSuffix(anew, " is not there") || slices.ContainsFunc(r.Problems,
			func(p Finding) bool { return p.About == f.About && p.Text == anew }):
			// it was checked again
		case strings.Contains(text, " is left out: the command "):
			f.Fix = "run the command in a shell: it must print the value within ten seconds"
			r.AddProblem(f)
		default:
			f.Fix = "mend what it refers to, then drawbridge mcp reload"
			r.AddProblem(f)
		}
	}
}

// checkProcess resolves the program of a stdio server, and reports whether it can be started.
func (r *Report) checkProcess(p Input, s config.Server, shown *ServerInfo) bool {
	shown.Dir = s.Cwd
	program, names, err := gateway.ResolveProcess(s, p.Set.Settings, p.Environ)
	shown.Program, shown.Env = program, names
	info, dirErr := os.Stat(s.Cwd)
	switch {
	case s.Cwd != "" && dirErr != nil:
		why := "cannot be read"
		if errors.Is(dirErr, fs.ErrNotExist) {
			why = "does not exist"
		}
		r.AddProblem(serverFinding(s, fmt.Sprintf("its directory %s %s", s.Cwd, why), `make it, or change "cwd"`))
		return false
	case s.Cwd != "" && !info.IsDir():
		r.AddProblem(serverFinding(s, s.Cwd+" is not a directory", `change "cwd"`))
		return false
	case err != nil && s.DeferredParts("env PATH") == nil: // otherwise it is known only when it runs
		why := strings.TrimSuffix(strings.TrimPrefix(err.Error(), "start "), ": "+fs.ErrNotExist.Error())
		fix := "install it, write its absolute path, or give the row a PATH in \"env\""
		if problem := s.CommandLineProblem(); problem != "" {
			why, fix, _ = strings.Cut(problem, ": ")
		}
		r.AddProblem(serverFinding(s, "its program cannot be started: "+why, fix))
		return false
	}
	return true
}

// checkValues looks at what the row's values refer to, and at what stands there in plain text.
func (r *Report) checkValues(p Input, s config.Server) {
	if len(s.Unresolved) > 0 {
		r.AddProblem(serverFinding(s, "variables that are not set: "+strings.Join(s.Unresolved, ", "),
			"set them where the client starts Drawbridge, or write a default: ${NAME:-text}"))
	}
	var commands []string
	for _, d := range s.DeferredValues {
		for _, part := range d.Parts {
			if part.Kind == config.CommandPart {
				commands = append(commands, safetext.Line(fmt.Sprintf("%s (%s)", d.Name, part.Text)))
				continue
			}
			r.checkReference(p, s, d.Name, part)
		}
	}
	if member, _ := s.KeyTarget(); member != "" {
		r.checkReference(p, s, "auth credential_id", config.ValuePart{Kind: config.KeychainPart, Text: s.Auth.CredentialID})
	}
	if len(commands) > 0 {
		r.AddNote(serverFinding(s, "values that are the output of a command, which runs when the server starts: "+
			strings.Join(commands, ", "), ""))
	}
	if plain := config.PlaintextSecrets(s.Raw); len(plain) > 0 {
		fix := "write ${NAME} for a variable, ${file:PATH}, ${keychain:NAME}, or !COMMAND"
		if slices.ContainsFunc(plain, func(what string) bool {
			return !strings.HasPrefix(what, "args ") &&
				!strings.HasPrefix(what, "url ")
		}) {
			fix = fmt.Sprintf("drawbridge secret move %s; or ", s.ID) + fix
		}
		r.AddNote(serverFinding(s, "in plain text, and it looks like a secret: "+strings.Join(plain, ", "), fix))
	}
}

// checkReference looks whether what a value refers to is there.
func (r *Report) checkReference(p Input, s config.Server, name string, part config.ValuePart) {
	switch part.Kind {
	case config.FilePart:
		if err := secrets.CheckFile(part.Text); err != nil {
			r.AddProblem(serverFinding(s, safetext.Line(fmt.Sprintf("%s: %v", name, err)),
				"put the value there, or name another file"))
		}
	case config.KeychainPart:
		if p.Secrets == nil {
			r.AddNote(serverFinding(s,
				safetext.Line(fmt.Sprintf("%s is looked up in the keychain when the server starts: %q", name,
					part.Text)), ""))
			return
		}
		if _, err := p.Secrets.Get(part.Text); err != nil {
			r.AddProblem(serverFinding(s, safetext.Line(fmt.Sprintf("%s: %q is not in the keychain: %v", name,
				part.Text, err)), "drawbridge secret set "+part.Text+"; or take the reference out"))
		}
	}
}

// checkFileModes finds files that hold secrets in plain text and that others may read. Windows has no such modes.
func (r *Report) checkFileModes(set config.Configuration) {
	if runtime.GOOS == "windows" {
		return
	}
	holds := map[string]bool{}
	for _, s := range slices.Concat(set.Servers, set.Shadowed) {
		if s.Origin.Kind != config.OriginProject && len(config.PlaintextSecrets(s.Raw)) > 0 {
			holds[s.Origin.Path] = true
		}
	}
	for _, path := range set.Sources {
		info, err := os.Stat(path)
		if err != nil || !holds[path] || info.Mode().Perm()&0o044 == 0 {
			continue
		}
		r.AddProblem(Finding{
			About: "the file", Text: fmt.Sprintf("it holds secrets in plain text, and others may read it (mode %04o)",
				info.Mode().Perm()),
			Source: path, Fix: "chmod 600 " + path,
		})
	}
}

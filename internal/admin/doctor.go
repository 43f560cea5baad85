package admin

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

// A Finding is a problem or a note that a person should know, as the command doctor prints it. It names variables,
// files, programs and commands, but never contains the value of a variable or a secret.
type Finding struct {
	// About is the subject of the finding: a server, a file, the store, the hub or a client.
	About string `json:"about"`
	Text  string `json:"text"`
	// Source is the path of the file that the finding is about, with the line if it is known.
	Source string `json:"source,omitempty"`
	// Fix is what the person should do; empty for a note that requires no action.
	Fix string `json:"fix,omitempty"`
}

// A ServerLaunch describes how a server would be started. It does not show whether the server runs.
type ServerLaunch struct {
	Name      drawbridge.ServerID `json:"name"`
	Transport string              `json:"transport"`
	// Target is the program with its arguments, or the URL, without secrets.
	Target string `json:"runs"`
	// Program is the path of the program, and Dir its working directory. Both are empty for a server reached over HTTP.
	Program string `json:"program,omitempty"`
	Dir     string `json:"cwd,omitempty"`
	// Env lists the names of the environment variables that the program would get.
	Env []string `json:"env,omitempty"`
	// Findings are warnings about what the command does, such as running code from its arguments.
	Findings []config.LaunchFinding `json:"findings,omitempty"`
	Source   string                 `json:"source"`
}

// A DoctorReport contains the findings of the command doctor, in the order in which they were added. A problem must be
// fixed; a note only informs. Servers describes each server that may be started.
//
// The checks of a DoctorReport neither start a server nor connect to one. Only CheckStoreWritable and
// CheckStoreCreatable write a file, and remove it at once.
type DoctorReport struct {
	Problems []Finding      `json:"problems"`
	Notes    []Finding      `json:"notes"`
	Servers  []ServerLaunch `json:"servers"`
}

// NewDoctorReport returns a report without findings. Its lists are empty, not nil.
func NewDoctorReport() *DoctorReport {
	return &DoctorReport{Problems: []Finding{}, Notes: []Finding{}, Servers: []ServerLaunch{}}
}

// AddProblem adds a finding that is a problem.
func (r *DoctorReport) AddProblem(f Finding) { r.Problems = append(r.Problems, f) }

// AddNote adds a finding that is not a problem.
func (r *DoctorReport) AddNote(f Finding) { r.Notes = append(r.Notes, f) }

// A DoctorInput is the configuration that CheckConfig checks, and the data that the checks need.
type DoctorInput struct {
	Set config.Configuration
	// Statuses are the last stored statuses of the servers in Set.Servers, in the same order; nil if no status is
	// stored.
	Statuses []drawbridge.ServerStatus
	// Rejected reports whether a person rejected the server of a project. If it is nil, no server is rejected.
	Rejected func(config.Server) bool
	// Environ is the environment from which servers get their variables, as "name=value".
	Environ []string
	// Secrets reads the keychain entries that the servers' configurations refer to. If it is nil, no entry is read.
	Secrets secrets.SecretGetter
}

// CheckConfig checks the configuration. It adds the warnings of its files, the findings on each server, and a note for
// each shadowed server. It adds a problem for each file with secrets that other users may read. A shadowed server is
// not used, because an earlier server has the same name.
func (r *DoctorReport) CheckConfig(p DoctorInput) {
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

// CheckTrust adds a problem if a server that may be started is quarantined, so that none of its tools is listed. t is
// the trust in the server; nil if no trust is recorded.
func (r *DoctorReport) CheckTrust(s config.Server, t *drawbridge.Trust) {
	if t != nil && t.Quarantined && s.Phase == drawbridge.Idle {
		r.AddProblem(serverFinding(s, "nothing of it is listed: "+t.String(),
			fmt.Sprintf("drawbridge shield trust %s shows why; with --reset it forgives it", s.ID)))
	}
}

func serverFinding(s config.Server, text, fix string) Finding {
	text = strings.TrimPrefix(text, fmt.Sprintf("Server %q: ", s.ID))
	return Finding{About: fmt.Sprintf("server %q", s.ID), Text: text, Source: s.Origin.String(), Fix: fix}
}

// addWarning adds a warning of the configuration as a problem or as a note. A warning about a project's file is a note.
// A warning about an unknown member is also a note, unless the name resembles a known member and may be misspelt.
// Warnings about unset variables are skipped, because checkValues adds them for their server.
func (r *DoctorReport) addWarning(w config.Warning) {
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

// checkServer adds the findings on one server. For a server that is refused, disabled or not approved, it only adds the
// reason. For any other server it checks the program, the confinement and the values. It then adds the notes and the
// fault of last, the last stored status of the server.
func (r *DoctorReport) checkServer(p DoctorInput, s config.Server, last drawbridge.ServerStatus) {
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
		why, _, _ := strings.Cut(s.Reason, " (drawbridge mcp approve") // the fix names the command
		r.AddProblem(serverFinding(s, "it needs approval: "+why,
			fmt.Sprintf("look at it, then drawbridge mcp approve %s, or drawbridge mcp reject %s", s.ID, s.ID)))
		return
	}
	shown := ServerLaunch{Name: s.ID, Transport: s.Transport(), Target: s.RedactedCommandLine(),
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
		r.AddFault(s, errors.New(last.Fault))
	}
}

// AddFault adds a problem: the last start of a server failed, or the server stopped with a fault. The fix is FaultTip of
// the fault; if that is empty, the fix is the command that tests the server.
func (r *DoctorReport) AddFault(s config.Server, fault error) {
	fix := FaultTip(fault)
	if fix == "" {
		fix = fmt.Sprintf("see what it says: drawbridge mcp test %s", s.ID)
	}
	r.AddProblem(serverFinding(s, "it did not work when it was last started: "+fault.Error(), fix))
}

// AddStatusNotes adds the notes of a server's status to the report. A value is left out if its file, keychain entry or
// command returns none. A note on such a value becomes a problem, because the server runs without the value. The note
// is skipped if it names a missing file or repeats a problem, because checkReference checks files and keychain entries
// again. All other notes are added as notes.
func (r *DoctorReport) AddStatusNotes(s config.Server, notes []string) {
	for _, text := range notes {
		f := serverFinding(s, text, "")
		anew := strings.Replace(f.Text, " is left out: ", ": ", 1)
		switch {
		case anew == f.Text:
			r.AddNote(f)
		case strings.HasSuffix(anew, " is not there") || slices.ContainsFunc(r.Problems,
			func(p Finding) bool { return p.About == f.About && p.Text == anew }):
			// checkReference checked the reference again
		case strings.Contains(text, " is left out: the command "):
			f.Fix = "run the command in a shell: it must print the value within ten seconds"
			r.AddProblem(f)
		default:
			f.Fix = "mend what it refers to, then drawbridge mcp reload"
			r.AddProblem(f)
		}
	}
}

// checkProcess finds the program of a stdio server and reports whether it can be started. It stores the program, its
// directory and its variables in shown.
func (r *DoctorReport) checkProcess(p DoctorInput, s config.Server, shown *ServerLaunch) bool {
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
	case err != nil && s.DeferredParts("env PATH") == nil: // a deferred PATH is known only at the start
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

// checkValues adds problems for variables that are not set, and for files and keychain entries that values refer to but
// that cannot be read. It adds notes on values that a command prints, and on plain-text values that look like secrets.
func (r *DoctorReport) checkValues(p DoctorInput, s config.Server) {
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

// checkReference adds a problem if the file or keychain entry that a value refers to cannot be read. name is the name
// of the value. If p.Secrets is nil, the keychain is not read: for a keychain entry, checkReference then only adds a
// note.
func (r *DoctorReport) checkReference(p DoctorInput, s config.Server, name string, part config.ValuePart) {
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

// checkFileModes adds a problem for each file that contains plain-text secrets and that other users may read. It skips
// files of projects. On Windows it does nothing, because files have no such modes.
func (r *DoctorReport) checkFileModes(set config.Configuration) {
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

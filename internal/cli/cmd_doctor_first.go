package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// examineOtherPrograms adds a problem if no server is configured although other programs have servers. It adds a note
// for each file of another program that still contains plain-text secrets of copied servers. With --mcp it adds
// nothing.
func (a *app) examineOtherPrograms(c *doctorOutput, set config.Configuration) {
	if len(a.configPaths) > 0 {
		return
	}
	scan, err := config.ScanImports(a.configOptions(), nil)
	if err != nil {
		return // the report has the problem already
	}
	c.CheckUnimported(set, scan.Candidates)
	copied := slices.DeleteFunc(scan.Candidates, func(f config.ImportCandidate) bool { return f.OwnName == "" })
	for _, path := range admin.PlaintextFiles(copied) {
		c.AddNote(admin.Finding{About: "the file", Source: path,
			Text: "it holds secrets in plain text, of servers that Drawbridge serves too",
			Fix:  "remove them there, or drawbridge connect CLIENT --replace"})
	}
}

// examineHeld adds a problem for each tool whose definition changed and waits for a person's decision. Until the
// decision, no call reaches such a tool.
func (a *app) examineHeld(ctx context.Context, c *doctorOutput) {
	held, err := a.adminService().HeldTools(ctx, "")
	if err != nil {
		return // the report has the problem of the store already
	}
	for _, h := range held {
		if h.Pin.Pending != nil && !h.Pin.Pending.Rejected {
			c.AddProblem(admin.Finding{About: fmt.Sprintf("server %q", h.Server),
				Text: fmt.Sprintf("%s is held: its definition changed, and it waits for you", safetext.Line(h.Label())),
				Fix:  fmt.Sprintf("drawbridge shield held %s", h.Server)})
		}
	}
}

// checkDirectCopies adds a problem if a connected client itself starts servers that Drawbridge serves too, because
// calls to them bypass Drawbridge's rules.
func (a *app) checkDirectCopies(c *doctorOutput, s admin.ClientState, set config.Configuration) {
	direct, err := a.adminService().DirectCopies(s.Client, set)
	if err != nil || len(direct) == 0 || len(a.configPaths) > 0 {
		return
	}
	c.AddProblem(admin.Finding{About: s.Title, Source: s.File,
		Text: fmt.Sprintf("it also starts %d of the servers itself, past your rules: %s", len(direct),
			safetext.Line(joinFirst(direct, 5))),
		Fix: fmt.Sprintf("drawbridge connect %s --replace", s.Client)})
}

// printServers prints the program of each server. A variable that all programs receive, and a finding that several
// servers share, are printed only once.
func (c *doctorOutput) printServers(a *app) {
	var common []string
	first := true
	for _, s := range c.Servers {
		if s.Program == "" {
			continue
		}
		if first {
			common, first = slices.Clone(s.Env), false
		}
		common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(s.Env, name) })
	}
	for _, s := range c.Servers {
		safetext.Fprintf(a.Out, "server %q runs %s\n", s.Name, s.Target)
		if s.Program == "" {
			continue
		}
		extra := slices.DeleteFunc(slices.Clone(s.Env), func(name string) bool { return slices.Contains(common, name) })
		more := ""
		if len(extra) > 0 {
			more = ", and the variables " + strings.Join(extra, " ")
		}
		safetext.Fprintf(a.Out, "  program %s, in %s%s\n", a.abbreviateHome(s.Program), a.abbreviateHome(s.Dir), more)
	}
	if len(common) > 0 {
		safetext.Fprintf(a.Out, "each program gets the variables %s\n", strings.Join(common, " "))
	}
	var texts []string
	names := map[string][]string{}
	for _, s := range c.Servers {
		for _, f := range s.Findings {
			if names[f.Text] == nil {
				texts = append(texts, f.Text)
			}
			names[f.Text] = append(names[f.Text], string(s.Name))
		}
	}
	for _, text := range texts {
		safetext.Fprintf(a.Out, "%s: %s\n", joinFirst(names[text], 4), text)
	}
}

// printProbeHint prints the command that starts each server that was never started, if there are such servers.
func (a *app) printProbeHint(c *doctorOutput) {
	if len(c.Untried) > 0 {
		safetext.Fprintf(a.Out, "%s never started: drawbridge doctor --probe starts each once\n",
			joinFirst(c.Untried, 4))
	}
}

// untriedServers returns the names of the servers that may start and have neither a listing nor a fault.
func untriedServers(set config.Configuration, statuses []drawbridge.ServerStatus) (names []string) {
	for i, s := range set.Servers {
		if s.Phase == drawbridge.Idle && (i >= len(statuses) || statuses[i].Listed.IsZero() && statuses[i].Fault == "") {
			names = append(names, string(s.ID))
		}
	}
	return names
}

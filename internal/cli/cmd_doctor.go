package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (a *app) doctorCommand() *cobra.Command {
	var probe, asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find problems and name a fix for each",
		Long: `Find problems of the configuration, the sign-ins, the store, the vector store, the models, the hub and
the clients' entries, and name a fix for each. For each server the command prints the program and the names of
its variables, never their values. It starts no server without --probe.

The exit code is 1 when there is a problem, and 0 when there are at most notes.`,
		Example: `  drawbridge doctor
  drawbridge doctor --probe        and start every server once
  drawbridge doctor --json | jq .problems`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runDoctor(cmd.Context(), probe, asJSON)
		},
	}
	cmd.Flags().BoolVar(&probe, "probe", false, "start every server and list it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// A doctorOutput contains the findings of "doctor", as --json prints them.
type doctorOutput struct {
	OK bool `json:"ok"`
	*admin.DoctorReport
	Sources []string            `json:"sources"`
	Store   string              `json:"store,omitempty"`
	Vectors string              `json:"vector_store,omitempty"`
	Models  []string            `json:"models,omitempty"`
	Hub     int                 `json:"hub_pid,omitempty"`
	Clients []admin.ClientState `json:"clients"`
	// Credentials are the states of the credentials for servers. Vault describes how credentials are stored.
	Credentials []admin.CredentialReport `json:"credentials,omitempty"`
	Vault       string                   `json:"vault,omitempty"`
	// Scripts describes the engine of run_python and how scripts are isolated.
	Scripts string `json:"scripts,omitempty"`
	// Untried names the servers that were never started.
	Untried []string `json:"untried,omitempty"`
}

func (a *app) runDoctor(ctx context.Context, probe, asJSON bool) error {
	c := &doctorOutput{DoctorReport: admin.NewDoctorReport(), Sources: []string{}}
	set, err := a.readConfig(ctx)
	if err != nil { // the store may be the problem; it is examined below
		set, err = config.Load(a.configOptions())
	}
	if err != nil {
		f := errorFinding("the configuration", err)
		if f.Fix == "" {
			f.Fix = "correct it there, then run drawbridge doctor again"
		}
		c.AddProblem(f)
	} else {
		c.Sources = append(c.Sources, set.Sources...)
		if err := a.examineConfig(ctx, c, set, probe); err != nil {
			return err
		}
		a.checkHub(c)
		a.examineOtherPrograms(c, set)
	}
	a.checkClients(c, set)
	c.Scripts = admin.DescribeScriptIsolation()
	c.CheckEngine()
	c.OK = len(c.Problems) == 0
	if !asJSON {
		a.printDoctorOutput(c)
	} else if err := PrintJSON(a.Out, c); err != nil {
		return err
	}
	if !c.OK {
		return errAlreadyPrinted
	}
	return nil
}

// errorFinding returns an error as a finding; the next step of a fault becomes the fix.
func errorFinding(about string, err error) admin.Finding {
	f := admin.Finding{About: about, Text: err.Error()}
	if fault, ok := errors.AsType[*drawbridge.Fault](err); ok && fault.Next != "" {
		f.Fix = fault.Next
		f.Text = strings.TrimSuffix(f.Text, " ("+fault.Next+")")
	}
	return f
}

// examineConfig adds the findings on the servers, the store, the credentials, the vector store and the models. With
// probe it also starts the servers.
func (a *app) examineConfig(ctx context.Context, c *doctorOutput, set config.Configuration, probe bool) error {
	p := admin.DoctorInput{Set: set, Environ: a.Environ, Secrets: a.vaultSecrets()}
	for _, insecure := range gateway.CheckStateFiles(gateway.Config{Store: a.storeLocation, LookupEnv: a.Env},
		set.Settings) {
		c.AddProblem(admin.Finding{About: "private files", Source: insecure.Path, Text: "it " + insecure.Reason,
			Fix: insecure.Fix})
	}
	report, err := a.adminService().InspectStore(ctx, set)
	none, isNone := errors.AsType[*admin.NoStoreError](err)
	unopened := report.Location == "" && err != nil && !isNone
	if !isNone && !unopened {
		a.addStoreReport(c, report, &p)
	}
	switch {
	case isNone:
		c.CheckStoreCreatable(none.Location)
	case err != nil:
		c.AddProblem(errorFinding("the store", err))
	}
	if probe {
		p.Statuses = nil // the probe replaces stored faults
	}
	c.CheckConfig(p)
	if !probe {
		c.Untried = untriedServers(set, p.Statuses)
	}
	a.examineHeld(ctx, c)
	a.examineCredentials(ctx, c, set, p.Statuses)
	a.examineVectors(ctx, c, set.Settings, probe)
	for _, m := range gateway.CheckModels(ctx, gateway.Config{Environ: a.Environ}, set.Settings,
		a.vaultSecrets(), probe) {
		c.addModelCheck(m)
	}
	if !probe || unopened {
		return nil
	}
	return a.probeServers(ctx, c)
}

// addStoreReport adds the findings on the store. For the later checks it sets p.Statuses, the last statuses of the
// servers, and p.Rejected, which reports the rejected servers.
func (a *app) addStoreReport(c *doctorOutput, report admin.StoreReport, p *admin.DoctorInput) {
	c.Store = report.Location
	c.CheckStoreWritable(report.Location)
	for _, b := range report.Broken {
		c.AddProblem(admin.Finding{
			About: "the store", Source: report.Location,
			Text: fmt.Sprintf("the record of %q is broken: %v", b.Stream, b.Err),
			Fix:  "keep a copy of the store; with --store, or without this file, a new record begins",
		})
	}
	if report.Lost != nil {
		c.AddProblem(errorFinding("the store", report.Lost))
	}
	for _, w := range report.Waiting {
		c.AddNote(admin.Finding{About: "the store", Source: report.Location, Text: w.String()})
	}
	if off := report.Clock.Difference(time.Now()); off != 0 {
		c.AddProblem(admin.Finding{About: "the store", Source: report.Location, Fix: "set the one that is wrong",
			Text: fmt.Sprintf("its clock and that of this machine differ by %s: no record of a call is removed by age",
				off.Abs())})
	}
	if jump := report.Clock.Jump(); jump != "" {
		c.AddProblem(admin.Finding{About: "the store", Source: report.Location,
			Text: "its clock jumped, and no record of a call is removed by age: " + jump,
			Fix:  "set the clock; or, if it is right, drawbridge audit confirm-clock"})
	}
	p.Statuses, p.Rejected = report.Statuses, report.Rejected
	for i, t := range report.Trust {
		c.CheckTrust(p.Set.Servers[i], t)
	}
}

// examineVectors adds a problem if the configured vector store does not answer. If a command prints a part of the
// store's URL, the check runs that command; therefore it is made only with probe.
func (a *app) examineVectors(ctx context.Context, c *doctorOutput, s config.Settings, probe bool) {
	if len(s.Vectors.Store) == 0 {
		return
	}
	const about = "the vector store"
	v, err := gateway.OpenVectors(ctx, gateway.Config{Environ: a.Environ}, s, nil, a.vaultSecrets())
	if err == nil {
		defer v.Close()
		if v.RunsCommand() && !probe {
			c.AddNote(admin.Finding{About: about,
				Text: "a command has a part in its URL: it is asked with --probe only"})
			return
		}
		c.Vectors, err = v.Check(ctx)
	}
	if err != nil {
		c.Vectors = ""
		c.AddProblem(errorFinding(about, err))
	}
}

// addModelCheck adds the findings from the check of one model.
func (c *doctorOutput) addModelCheck(m gateway.ModelCheckup) {
	switch {
	case m.Err != nil:
		c.AddProblem(errorFinding(m.Subject, m.Err))
	case m.Skipped:
		c.AddNote(admin.Finding{About: m.Subject,
			Text: "a command has a part in its key: it is asked with --probe only"})
	case m.Slow != "":
		c.AddNote(admin.Finding{About: m.Subject, Text: m.Slow})
	}
	if m.Answer != "" && m.Err == nil {
		c.Models = append(c.Models, m.Subject+" is "+safetext.Text(m.Answer))
	}
}

// probeServers starts and lists every server, and adds a problem for each fault.
func (a *app) probeServers(ctx context.Context, c *doctorOutput) error {
	g, err := a.openOnDemandGateway(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	var faults map[drawbridge.ServerID]error
	err = a.withRunningGateway(ctx, g, func(ctx context.Context) error {
		a.withProgress(ctx, g, func() { _, faults = g.MountAll(ctx) })
		return nil
	})
	if err != nil {
		return err
	}
	said := map[string][]string{}
	for _, s := range g.Status() {
		said[s.Source] = s.Notes
	}
	for _, s := range g.Config().Servers {
		c.AddStatusNotes(s, said[s.Origin.String()])
		if fault := faults[s.ID]; fault != nil && s.Phase == drawbridge.Idle && !c.cannotStart(s) {
			c.AddFault(s, fault)
		}
	}
	return nil
}

// cannotStart reports whether the report already shows that the program of a server was not found.
func (c *doctorOutput) cannotStart(s config.Server) bool {
	return slices.ContainsFunc(c.Servers, func(one admin.ServerLaunch) bool {
		return one.Source == s.Origin.String() && one.Program == "" && s.Command != ""
	})
}

// checkHub adds the finding on the hub: whether a hub runs and answers.
func (a *app) checkHub(c *doctorOutput) {
	state, err := hub.ReadState(a.hubOptions())
	if err == nil {
		c.Hub = state.PID
		return
	}
	if !errors.Is(err, hub.ErrNoHub) {
		c.AddProblem(errorFinding("the hub", err))
		return
	}
	lock, err := hub.ReadLockState(a.hubOptions())
	switch {
	case err != nil:
		c.AddProblem(admin.Finding{About: "the hub", Text: "its file cannot be read: " + err.Error(),
			Source: lock.File, Fix: "take the file away"})
	case lock.Held:
		c.AddProblem(admin.Finding{
			About: "the hub", Source: lock.File, Text: fmt.Sprintf("process %d is the hub, and does not answer",
				lock.PID),
			Fix: fmt.Sprintf("end it, and the next client starts another: kill %d", lock.PID),
		})
	case lock.PID != 0:
		c.AddNote(admin.Finding{
			About: "the hub", Source: lock.File,
			Text: fmt.Sprintf("none runs; the last one, process %d, was killed, and the next one clears up after it",
				lock.PID),
		})
	default:
		c.AddNote(admin.Finding{About: "the hub", Text: "none runs; the first client starts it"})
	}
}

// checkClients adds the findings on the files of clients. It adds a note that names the clients that are not connected
// to Drawbridge. For a connected client it checks the program that the client starts, and whether the client also
// starts servers itself.
func (a *app) checkClients(c *doctorOutput, set config.Configuration) {
	c.Clients = a.adminService().ClientStates()
	var others []string
	for _, s := range c.Clients {
		f := admin.Finding{About: s.Title, Source: s.File, Fix: "drawbridge connect " + s.Client}
		switch {
		case s.Problem != "" && s.Present:
			f.Text, f.Fix = s.Problem, ""
			c.AddNote(f)
		case !s.Present:
		case !s.Connected:
			others = append(others, s.Client)
		default:
			a.checkClientEntry(c, s, f)
			a.checkDirectCopies(c, s, set)
		}
	}
	if len(others) > 0 {
		c.AddNote(admin.Finding{About: "clients", Text: "not connected: " + strings.Join(others, ", "),
			Fix: "drawbridge connect " + others[0]})
	}
}

func (a *app) checkClientEntry(c *doctorOutput, s admin.ClientState, f admin.Finding) {
	program, err := exec.LookPath(s.Command)
	switch {
	case err != nil:
		f.Text = fmt.Sprintf("it starts %s, which is not there", s.Command)
		c.AddProblem(f)
	case !sameFile(program, a.Self):
		f.Text = fmt.Sprintf("it starts %s, which is not this program (%s)", s.Command, a.Self)
		c.AddNote(f)
	}
}

func (a *app) printDoctorOutput(c *doctorOutput) {
	c.printServers(a)
	a.printCredentials(c)
	if c.Store != "" {
		safetext.Fprintf(a.Out, "the store is %s\n", a.abbreviateHome(c.Store))
	}
	if c.Vectors != "" {
		safetext.Fprintf(a.Out, "the vector store is %s, and answers\n", c.Vectors)
	}
	for _, m := range c.Models {
		safetext.Fprintln(a.Out, m)
	}
	safetext.Fprintln(a.Out, c.Scripts)
	if c.Hub != 0 {
		safetext.Fprintf(a.Out, "the hub is process %d (drawbridge ps)\n", c.Hub)
	}
	for _, s := range c.Clients {
		if s.Connected {
			safetext.Fprintf(a.Out, "%s is connected\n", s.Title)
		}
	}
	for _, f := range c.Notes {
		a.printFinding("note:", f)
	}
	for _, f := range c.Problems {
		a.printFinding("✗", f)
	}
	a.printProbeHint(c)
	if c.OK {
		safetext.Fprintf(a.Out, "✓ no problems, %s\n", formatCount(len(c.Notes), "note"))
		return
	}
	safetext.Fprintf(a.Out, "%s, %s\n", formatCount(len(c.Problems), "problem"),
		formatCount(len(c.Notes), "note"))
}

func (a *app) printFinding(mark string, f admin.Finding) {
	where := ""
	if f.Source != "" {
		where = " (" + a.abbreviateHome(f.Source) + ")"
	}
	safetext.Fprintf(a.Out, "%s %s%s: %s\n", mark, f.About, where, f.Text)
	if f.Fix != "" {
		safetext.Fprintf(a.Out, "    → %s\n", f.Fix)
	}
}

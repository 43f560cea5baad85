package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/doctor"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/login"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/record"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/shield"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/spf13/cobra"
)

func (a *app) doctorCommand() *cobra.Command {
	var probe, asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong, and say how to mend it",
		Long: `Find what is wrong with the configuration, the sign-ins, the store, the vector store, the models, the
hub and the clients' entries, and say how to mend it. What each server would run is shown, with the names of the
variables that it would find; values are not. Nothing is started, unless --probe asks for that.

The exit code is 1 when there is a problem, and 0 when there are at most notes.`,
		Example: `  drawbridge doctor
  drawbridge doctor --probe        and start every server once
  drawbridge doctor --json | jq .problems`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.doctor(cmd.Context(), probe, asJSON)
		},
	}
	cmd.Flags().BoolVar(&probe, "probe", false, "start every server and list it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// checkup is what "doctor" found, as --json prints it.
type checkup struct {
	OK bool `json:"ok"`
	*doctor.Report
	Sources []string      `json:"sources"`
	Store   string        `json:"store,omitempty"`
	Vectors string        `json:"vector_store,omitempty"`
	Models  []string      `json:"models,omitempty"`
	Hub     int           `json:"hub_pid,omitempty"`
	Clients []clientState `json:"clients"`
	// Credentials are how we stand with servers that want to know who asks, Vault where that is kept.
	Credentials []login.Kept `json:"credentials,omitempty"`
	Vault       string       `json:"vault,omitempty"`
}

func (a *app) doctor(ctx context.Context, probe, asJSON bool) error {
	c := &checkup{Report: doctor.NewReport(), Sources: []string{}}
	set, err := a.configuration(ctx)
	if err != nil { // it may be the store, which is looked at below
		set, err = config.Load(a.places())
	}
	if err != nil {
		c.Problem(findingOf("the configuration", err))
	} else {
		c.Sources = append(c.Sources, set.Sources...)
		if err := a.examine(ctx, c, set, probe); err != nil {
			return err
		}
		a.checkHub(c)
	}
	a.checkClients(c)
	c.OK = len(c.Problems) == 0
	if !asJSON {
		a.printCheckup(c)
	} else if err := printJSON(a.Out, c); err != nil {
		return err
	}
	if !c.OK {
		return errQuiet
	}
	return nil
}

// findingOf is an error as a finding: the fault's next step is the fix.
func findingOf(about string, err error) doctor.Finding {
	f := doctor.Finding{About: about, Text: err.Error()}
	if fault, ok := errors.AsType[*drawbridge.Fault](err); ok && fault.Next != "" {
		f.Fix = fault.Next
		f.Text = strings.TrimSuffix(f.Text, " ("+fault.Next+")")
	}
	return f
}

// examine looks at the rows and at the store, and with probe starts the servers.
func (a *app) examine(ctx context.Context, c *checkup, set config.Set, probe bool) error {
	p := doctor.Patient{Set: set, Environ: a.Environ, Keeper: a.keeper(), Tip: func(fault string) string { return login.Tip(errors.New(fault)) }}
	db, err := a.openStore(ctx, set)
	none, isNone := errors.AsType[*noStoreError](err)
	switch {
	case isNone:
		c.Note(doctor.Finding{About: "the store", Text: "there is none yet; the first start makes it", Source: none.location})
	case err != nil:
		c.Problem(findingOf("the store", err))
	default:
		defer db.Close()
		if err := a.examineStore(ctx, c, db, &p); err != nil {
			c.Problem(findingOf("the store", err))
		}
	}
	if probe {
		p.Statuses = nil // what is remembered of faults is out of date
	}
	c.Examine(p)
	a.examineCredentials(c, set, p.Statuses)
	a.examineVectors(ctx, c, set.Settings, probe)
	for _, m := range gateway.CheckModels(ctx, gateway.Config{Environ: a.Environ}, set.Settings, a.keeper(), probe) {
		c.model(m)
	}
	if !probe || err != nil && !isNone {
		return nil
	}
	return a.probe(ctx, c)
}

// examineStore checks the store, and reads from it what is remembered of servers.
func (a *app) examineStore(ctx context.Context, c *checkup, db *store.DB, p *doctor.Patient) error {
	location, err := gateway.StoreLocation(a.store, p.Set.Settings, a.Env)
	if err != nil {
		return err
	}
	if u, err := url.Parse(location); err == nil && strings.Contains(location, "://") {
		location = u.Redacted()
	}
	c.Store = location
	c.Kept(location)
	streams, err := db.Streams(ctx)
	if err != nil {
		return err
	}
	for _, stream := range streams {
		if _, err := record.Verify(ctx, db, stream); err != nil {
			c.Problem(doctor.Finding{
				About: "the store", Source: location, Text: fmt.Sprintf("the record of %q is broken: %v", stream, err),
				Fix: "keep a copy of the store; with --store, or without this file, a new record begins",
			})
		}
	}
	mounts, err := db.MountsOf(ctx, config.Hashes(p.Set.Servers))
	if err != nil {
		return err
	}
	trust, err := gateway.ReadTrust(ctx, db, p.Set.Settings)
	if err != nil {
		return err
	}
	for _, s := range p.Set.Servers {
		p.Statuses = append(p.Statuses, statusOf(s, mounts[s.Hash]))
		c.Judged(s, shield.TrustOf(trust, s))
	}
	approvals, err := db.Approvals(ctx)
	if err != nil {
		return err
	}
	p.Rejected = func(s config.Server) bool {
		decided, ok := approvals.Of(s)
		return ok && !decided.Approved && decided.Hash == s.Hash
	}
	return nil
}

// examineVectors asks the place that the settings name for vectors.
func (a *app) examineVectors(ctx context.Context, c *checkup, s config.Settings, probe bool) {
	if len(s.Vectors.Store) == 0 {
		return
	}
	const about = "the vector store"
	v, err := gateway.OpenVectors(gateway.Config{Environ: a.Environ}, s, nil, a.keeper())
	if err == nil {
		defer v.Close()
		if v.Runs() && !probe {
			c.Note(doctor.Finding{About: about, Text: "a command has a part in its URL: it is asked with --probe only"})
			return
		}
		c.Vectors, err = v.Check(ctx)
	}
	if err != nil {
		c.Vectors = ""
		c.Problem(findingOf(about, err))
	}
}

// model takes down how a model answered.
func (c *checkup) model(m gateway.ModelCheckup) {
	switch {
	case m.Err != nil:
		c.Problem(findingOf(m.About, m.Err))
	case m.Skipped:
		c.Note(doctor.Finding{About: m.About, Text: "a command has a part in its key: it is asked with --probe only"})
	case m.Slow != "":
		c.Note(doctor.Finding{About: m.About, Text: m.Slow})
	}
	if m.Answer != "" && m.Err == nil {
		c.Models = append(c.Models, m.About+" is "+safetext.Text(m.Answer))
	}
}

// probe starts every server, and lists it.
func (a *app) probe(ctx context.Context, c *checkup) error {
	g, err := a.oneOff(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	var faults map[drawbridge.ServerID]error
	err = a.running(ctx, g, func(ctx context.Context) error {
		a.whileShown(ctx, g, func() { _, faults = g.Load(ctx) })
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
		c.Said(s, said[s.Origin.String()])
		if fault := faults[s.ID]; fault != nil && s.Phase == drawbridge.Idle && !c.startless(s) {
			c.Fault(s, fault.Error(), login.Tip(fault))
		}
	}
	return nil
}

// startless says whether it is known already that a server cannot be started.
func (c *checkup) startless(s config.Server) bool {
	return slices.ContainsFunc(c.Servers, func(one doctor.Server) bool {
		return one.Source == s.Origin.String() && one.Program == "" && s.Command != ""
	})
}

// checkHub looks for the hub, and for one that does not answer.
func (a *app) checkHub(c *checkup) {
	state, err := hub.ReadState(a.hub())
	if err == nil {
		c.Hub = state.PID
		return
	}
	if !errors.Is(err, hub.ErrNone) {
		c.Problem(findingOf("the hub", err))
		return
	}
	lock, err := hub.ReadLock(a.hub())
	switch {
	case err != nil:
		c.Problem(doctor.Finding{About: "the hub", Text: "its file cannot be read: " + err.Error(), Source: lock.File, Fix: "take the file away"})
	case lock.Held:
		c.Problem(doctor.Finding{
			About: "the hub", Source: lock.File, Text: fmt.Sprintf("process %d is the hub, and does not answer", lock.PID),
			Fix: fmt.Sprintf("end it, and the next client starts another: kill %d", lock.PID),
		})
	case lock.PID != 0:
		c.Note(doctor.Finding{
			About: "the hub", Source: lock.File, Text: fmt.Sprintf("none runs; the last one, process %d, was killed, and the next one clears up after it", lock.PID),
		})
	default:
		c.Note(doctor.Finding{About: "the hub", Text: "none runs; the first client starts it"})
	}
}

// checkClients looks at what the clients' entries start.
func (a *app) checkClients(c *checkup) {
	c.Clients = a.clientStates()
	var others []string
	for _, s := range c.Clients {
		f := doctor.Finding{About: s.Title, Source: s.File, Fix: "drawbridge connect " + s.Client}
		switch {
		case s.Problem != "" && s.Present:
			f.Text, f.Fix = s.Problem, ""
			c.Note(f)
		case !s.Present:
		case !s.Connected:
			others = append(others, s.Client)
		default:
			a.checkEntry(c, s, f)
		}
	}
	if len(others) > 0 {
		c.Note(doctor.Finding{About: "clients", Text: "not connected: " + strings.Join(others, ", "), Fix: "drawbridge connect CLIENT"})
	}
}

func (a *app) checkEntry(c *checkup, s clientState, f doctor.Finding) {
	program, err := exec.LookPath(s.Command)
	switch {
	case err != nil:
		f.Text = fmt.Sprintf("it starts %s, which is not there", s.Command)
		c.Problem(f)
	case !sameFile(program, a.Self):
		f.Text = fmt.Sprintf("it starts %s, which is not this program (%s)", s.Command, a.Self)
		c.Note(f)
	}
}

func (a *app) printCheckup(c *checkup) {
	for _, s := range c.Servers {
		safetext.Fprintf(a.Out, "server %q runs %s\n", s.Name, s.Runs)
		if s.Program != "" {
			safetext.Fprintf(a.Out, "  program %s, in %s, with the variables %s\n", a.short(s.Program), a.short(s.Dir), strings.Join(s.Env, " "))
		}
		for _, f := range s.Findings {
			safetext.Fprintf(a.Out, "  %s\n", f.Text)
		}
	}
	a.printCredentials(c)
	if c.Store != "" {
		safetext.Fprintf(a.Out, "the store is %s\n", a.short(c.Store))
	}
	if c.Vectors != "" {
		safetext.Fprintf(a.Out, "the vector store is %s, and answers\n", c.Vectors)
	}
	for _, m := range c.Models {
		safetext.Fprintln(a.Out, m)
	}
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
	if c.OK {
		safetext.Fprintf(a.Out, "✓ no problems, %s\n", count(len(c.Notes), "note"))
		return
	}
	safetext.Fprintf(a.Out, "%s, %s\n", count(len(c.Problems), "problem"), count(len(c.Notes), "note"))
}

func (a *app) printFinding(mark string, f doctor.Finding) {
	where := ""
	if f.Source != "" {
		where = " (" + a.short(f.Source) + ")"
	}
	safetext.Fprintf(a.Out, "%s %s%s: %s\n", mark, f.About, where, f.Text)
	if f.Fix != "" {
		safetext.Fprintf(a.Out, "    → %s\n", f.Fix)
	}
}

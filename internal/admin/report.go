package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/backup"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// ReportOptions are the options of WriteReport. With the zero value, the report has no findings of doctor and no CPU
// profile.
type ReportOptions struct {
	// Findings are the findings of the command doctor.
	Findings DoctorReport
	// CPU is how long the CPU usage of the hub is profiled; 0 means that the report has no CPU profile.
	CPU time.Duration
	// Overwrite permits WriteReport to replace an existing file.
	Overwrite bool
}

// A problemReport is the content of the file report.json in a report. A person can send the report to others: it has no
// values of the servers' configuration, no texts of servers and no names of people.
type problemReport struct {
	Versions map[string]string `json:"versions"`
	Errors   []string          `json:"errors,omitempty"`
	Hub      reportedHub       `json:"hub"`
	Servers  []reportedServer  `json:"servers"`
	Settings map[string]any    `json:"settings"`
	Store    reportedStore     `json:"store"`
	Problems []reportedFinding `json:"problems"`
	Notes    []reportedFinding `json:"notes"`
}

type reportedHub struct {
	State   string    `json:"state"`
	PID     int       `json:"pid,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Memory  int64     `json:"memory,omitempty"`
	Clients []string  `json:"clients,omitempty"`
	Servers int       `json:"servers,omitempty"`
}

// A reportedServer describes a server in a report. Instead of its name, which may be confidential, it has the number of
// the server in the list.
type reportedServer struct {
	Number      int                    `json:"server"`
	Transport   string                 `json:"transport"`
	Phase       drawbridge.ServerPhase `json:"phase"`
	Era         string                 `json:"era,omitempty"`
	Cards       int                    `json:"cards"`
	StartMillis int64                  `json:"start_ms,omitempty"`
	Listed      time.Time              `json:"listed,omitzero"`
	Junk        int                    `json:"junk,omitempty"`
	Notes       int                    `json:"notes,omitempty"`
	StderrLines int                    `json:"stderr_lines,omitempty"`
	Fault       string                 `json:"fault,omitempty"`
}

type reportedStore struct {
	Kind     string         `json:"kind"`
	Schema   int            `json:"schema"`
	Contents store.Contents `json:"contents"`
}

type reportedFinding struct {
	About string `json:"about"`
	Text  string `json:"text"`
}

// WriteReport writes an archive with data for the analysis of a problem to path, and returns the list of the archived
// files. The archive has versions, findings, states, counts and the goroutine stacks of the hub. It has no secrets:
// values of the servers' configuration, texts of servers and arguments of calls are omitted. WriteReport sends the
// archive nowhere.
func (r *Service) WriteReport(ctx context.Context, path string, o ReportOptions) (backup.Manifest, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".drawbridge-report-*")
	if err != nil {
		return backup.Manifest{}, err
	}
	defer os.RemoveAll(dir)
	text, err := json.MarshalIndent(r.collectReport(ctx, o), "", "  ")
	if err != nil {
		return backup.Manifest{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), append(text, '\n'), 0o600); err != nil {
		return backup.Manifest{}, err
	}
	if err := r.addProfiles(ctx, dir, o); err != nil {
		return backup.Manifest{}, err
	}
	m := backup.Manifest{Program: r.o.Gateway.Version, Made: time.Now().UTC().Truncate(time.Second)}
	m, err = backup.Write(path, dir, m, backup.WriteOptions{Overwrite: o.Overwrite})
	if errors.Is(err, backup.ErrExists) {
		return m, userErrorf("write %s: it exists already (name another file, or replace it with --force)", path)
	}
	return m, err
}

// addProfiles writes the goroutine stacks of the hub and, if o.CPU is set, its CPU profile to dir. If no hub can be
// reached, it returns an error only if o.CPU is set.
func (r *Service) addProfiles(ctx context.Context, dir string, o ReportOptions) error {
	stacks, err := r.o.Hub.Goroutines(ctx)
	if err != nil {
		if o.CPU > 0 {
			return userErrorf("take a CPU profile: %v", err)
		}
		return nil // report.json describes the state of the hub
	}
	shortened := (&reportRedactor{home: r.homeDir()}).shortenHome(string(stacks))
	if err := os.WriteFile(filepath.Join(dir, "goroutines.txt"), []byte(shortened), 0o600); err != nil || o.CPU <= 0 {
		return err
	}
	profile, err := r.o.Hub.CPUProfile(ctx, o.CPU)
	if err != nil {
		return userErrorf("take a CPU profile: %v", err)
	}
	return os.WriteFile(filepath.Join(dir, "cpu.pprof"), profile, 0o600)
}

func (r *Service) homeDir() string {
	home, _ := r.o.ConfigOptions.LookupEnv("HOME")
	return home
}

// collectReport returns the content of report.json. If a part of the data cannot be read, the report has an error
// instead.
func (r *Service) collectReport(ctx context.Context, o ReportOptions) problemReport {
	p := problemReport{Versions: reportVersions(r.o.Gateway.Version), Servers: []reportedServer{},
		Problems: []reportedFinding{}, Notes: []reportedFinding{}}
	set, err := config.Load(r.o.ConfigOptions)
	if err != nil {
		p.Errors = append(p.Errors, "the configuration cannot be read: "+describeFault(err.Error()))
	}
	vault, err := gateway.OpenVault(r.o.Gateway)
	if err != nil {
		p.Errors = append(p.Errors, "the vault cannot be opened: "+describeFault(err.Error()))
	}
	redactor := newReportRedactor(set, r.o.Environ, vault, r.homeDir())
	p.Settings = describeSettings(set.Settings)
	p.Hub = r.reportHub()
	statuses, _, err := r.ServerStatuses(ctx, true)
	if err != nil {
		p.Errors = append(p.Errors, "the servers' states cannot be read: "+describeFault(err.Error()))
	}
	for i, s := range statuses {
		redactor.numbers[fmt.Sprintf("server %q", s.Server)] = fmt.Sprint("server ", i+1)
		p.Servers = append(p.Servers, reportedServer{Number: i + 1, Transport: s.Transport, Phase: s.Phase, Era: s.Era, Cards: s.Cards,
			StartMillis: s.StartMillis, Listed: s.Listed, Junk: s.Junk, Notes: len(s.Notes), StderrLines: len(s.Stderr),
			Fault: describeFault(s.Fault)})
	}
	if p.Store, err = r.reportStore(ctx, set); err != nil {
		p.Errors = append(p.Errors, "the store cannot be read: "+describeFault(err.Error()))
	}
	var foreign []string
	for _, s := range statuses {
		foreign = append(append(foreign, s.Fault), s.Notes...)
	}
	p.Problems = redactor.findings(o.Findings.Problems, foreign)
	p.Notes = redactor.findings(o.Findings.Notes, foreign)
	return p
}

// findings returns redacted findings of the command doctor for a report. foreign are the faults and notes of servers.
// If the text of a finding may come from a server, the result has only the known causes in the text; see describeFault.
func (r *reportRedactor) findings(all []Finding, foreign []string) []reportedFinding {
	shown := make([]reportedFinding, 0, len(all))
	for _, f := range all {
		text := r.redact(f.Text)
		if isForeignText(f, foreign) {
			text = describeFault(f.Text)
		}
		about := cmp.Or(r.numbers[f.About], redactQuoted(safetext.Line(f.About)))
		shown = append(shown, reportedFinding{About: about, Text: text})
	}
	return shown
}

func reportVersions(program string) map[string]string {
	v := map[string]string{"drawbridge": program, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision", "vcs.modified", "-tags", "-race":
				v[s.Key] = s.Value
			}
		}
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		v["kernel"] = safetext.Line(strings.TrimSpace(string(kernel)))
	}
	return v
}

func (r *Service) reportHub() reportedHub {
	hub, err := r.o.Hub.Summary()
	switch {
	case err != nil:
		return reportedHub{State: "it does not answer: " + describeFault(err.Error())}
	case hub == nil:
		return reportedHub{State: "no hub runs"}
	}
	return reportedHub{State: "runs", PID: hub.PID, Since: hub.Since, Memory: hub.Memory, Clients: hub.Clients,
		Servers: hub.Servers}
}

func (r *Service) reportStore(ctx context.Context, set config.Configuration) (s reportedStore, err error) {
	s.Schema, s.Kind = store.SchemaVersion, "none yet"
	location, err := gateway.StoreLocation(r.o.Store, set.Settings, r.o.ConfigOptions.LookupEnv)
	if err != nil {
		return s, err
	}
	db, err := r.openStore(ctx, set, false)
	if err != nil || db == nil {
		return s, err
	}
	s.Kind = "postgres"
	if location == gateway.MemoryStore || filepath.IsAbs(location) {
		s.Kind = "file"
	}
	s.Contents, err = db.Contents(ctx)
	return s, errors.Join(err, db.Close())
}

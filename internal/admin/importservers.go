package admin

import (
	"errors"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// An ImportReport describes the servers that are configured in other programs, and the result of copying them. It
// contains no values from their configuration, because these may be secrets.
type ImportReport struct {
	// File is Drawbridge's configuration file to which servers are copied. Taken are the names of the servers that
	// ImportServers copied.
	File    string                `json:"file"`
	Taken   []drawbridge.ServerID `json:"taken"`
	Servers []ImportableServer    `json:"servers"`
	// Kept are the names under which secrets were stored in Options.Secrets.
	Kept  []string `json:"kept,omitempty"`
	Notes []string `json:"warnings,omitempty"`
	// New is the number of servers that are to be copied. MovableSecrets is the number of their plain-text secrets that
	// can be moved to Options.Secrets.
	New            int `json:"-"`
	MovableSecrets int `json:"-"`

	candidates []config.ImportCandidate
}

// PlaintextFiles returns the paths of the other programs' files that contain plain-text secrets of copied servers,
// sorted. Copying does not change these files.
func (i ImportReport) PlaintextFiles() []string { return PlaintextFiles(i.candidates) }

// An ImportableServer is a definition that was found in a file of another program.
type ImportableServer struct {
	Name      drawbridge.ServerID `json:"name"`
	Provider  string              `json:"provider"`
	From      string              `json:"from"`
	Source    string              `json:"source"`
	Transport string              `json:"transport"`
	Status    config.ImportStatus `json:"status"`
	Reason    string              `json:"reason,omitempty"`
	Notes     []string            `json:"notes,omitempty"`
	// Secrets are the names, not the values, of plain-text values that look like secrets; see config.PlaintextSecrets.
	Secrets []string `json:"plain_secrets,omitempty"`
	// Movable reports whether at least one of these secrets can be moved to Options.Secrets.
	Movable bool `json:"-"`
}

// ScanImports finds the servers that are configured in other programs. from are the IDs of the programs whose files are
// read; if it is empty, the files of all known programs are read. The error is that of config.ScanImports.
func (r *Service) ScanImports(from []string) (config.ImportScan, error) {
	return config.ScanImports(r.o.ConfigOptions, from)
}

// NewImportReport returns a report of the servers that a scan found, for ImportServers. Only the picked servers are to
// be copied. It changes no file. The error is that of PickImports.
func (r *Service) NewImportReport(s config.ImportScan, picks []ImportPick) (ImportReport, error) {
	file, err := config.UserFile(r.o.ConfigOptions)
	if err != nil {
		return ImportReport{}, err
	}
	if s.Candidates, err = PickImports(s, picks); err != nil {
		return ImportReport{}, err
	}
	all := ImportReport{File: file, Taken: []drawbridge.ServerID{}, Servers: []ImportableServer{},
		candidates: s.Candidates}
	for _, f := range s.Candidates {
		n := CountMovableSecrets(f.Raw, r.o.ConfigOptions.LookupEnv)
		if f.Status == config.ImportNew {
			all.New++
			all.MovableSecrets += n
		}
		all.Servers = append(all.Servers, ImportableServer{
			Name: f.Name, Provider: f.Provider, From: f.ProviderTitle, Source: f.Origin.String(),
			Transport: f.Transport, Status: f.Status,
			Reason: f.Reason, Notes: f.Notes, Secrets: config.PlaintextSecrets(f.Raw), Movable: n > 0,
		})
	}
	for _, w := range s.Warnings {
		all.Notes = append(all.Notes, w.String())
	}
	return all, nil
}

// ImportServers copies the picked servers of a report to Drawbridge's configuration file, and sets found.Taken and
// found.Kept. If moveSecrets is set, it stores their plain-text secrets in Options.Secrets, and the copies contain
// references to them. After an error the file is unchanged, and the secrets that it has stored are removed.
func (r *Service) ImportServers(found *ImportReport, moveSecrets bool) error {
	rows := slices.Clone(found.candidates)
	var moved []MovedSecrets
	undo := func(err error) error {
		for _, k := range moved {
			err = errors.Join(err, k.Undo())
		}
		return err
	}
	for i, row := range rows {
		if !moveSecrets || row.Status != config.ImportNew {
			continue
		}
		kept, err := MoveRowSecrets(r.o.Secrets, row.Name, row.Raw, r.o.ConfigOptions.LookupEnv)
		if err != nil {
			return undo(err)
		}
		moved = append(moved, kept)
		rows[i].Raw = kept.Row
	}
	taken, err := config.ImportServers(found.File, rows)
	if err != nil {
		return undo(err)
	}
	found.Taken = taken
	for _, k := range moved {
		found.Kept = append(found.Kept, k.Names...)
	}
	return nil
}

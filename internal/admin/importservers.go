package admin

import (
	"errors"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// An ImportReport has the servers of other programs and the result of copying them. It contains no value of a row.
type ImportReport struct {
	// File is the file to which servers are copied, and Taken the names of those that were.
	File    string                `json:"file"`
	Taken   []drawbridge.ServerID `json:"taken"`
	Servers []ImportableServer    `json:"servers"`
	// Kept names the values that were moved to the keychain.
	Kept  []string `json:"kept,omitempty"`
	Notes []string `json:"warnings,omitempty"`
	// New counts the servers that are copied, and MovableSecrets their secrets that can be moved.
	New            int `json:"-"`
	MovableSecrets int `json:"-"`

	candidates []config.ImportCandidate
}

// PlaintextFiles returns the files of other programs that still hold secrets of copied servers in plain text, sorted.
func (i ImportReport) PlaintextFiles() []string { return PlaintextFiles(i.candidates) }

// An ImportableServer is a definition that was found.
type ImportableServer struct {
	Name      drawbridge.ServerID `json:"name"`
	Provider  string              `json:"provider"`
	From      string              `json:"from"`
	Source    string              `json:"source"`
	Transport string              `json:"transport"`
	Status    config.ImportStatus `json:"status"`
	Reason    string              `json:"reason,omitempty"`
	Notes     []string            `json:"notes,omitempty"`
	// Secrets names the values that look like secrets in plain text.
	Secrets []string `json:"plain_secrets,omitempty"`
	// Movable reports that some of them can be moved.
	Movable bool `json:"-"`
}

// ScanImports reads the servers that are configured in other programs, all or those named. The error is that of
// config.ScanImports.
func (r *Service) ScanImports(from []string) (config.ImportScan, error) {
	return config.ScanImports(r.o.ConfigOptions, from)
}

// NewImportReport returns the report of a scan of which only the picked servers are copied; without picks, all new ones.
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

// ImportServers copies the new servers of a scan. With moveSecrets it stores their plain-text secrets first, and the
// copies refer to them. After an error nothing is written, and the values stored so far are removed.
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
